/* The kernels as an image, for the program that uses the driver alone. */
#include "harness/bench/hostloop_kernels.h"
