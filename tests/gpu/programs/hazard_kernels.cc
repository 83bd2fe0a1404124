// The kernels' CPU form, which the simulated driver opens (CUSIM_KERNELS).
#include "tests/gpu/programs/hazard_kernels.h"
