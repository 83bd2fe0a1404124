// The kernels' CPU form, which the simulated driver opens (CUSIM_KERNELS).
#include "harness/bench/hostloop_kernels.h"
