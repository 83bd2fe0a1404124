/* The kernels as an image, for the program that comes by the driver alone. */
#include "harness/bench/hostloop_kernels.h"
