/*
 * The driver version of this library. Each library in BUILD compiles this file for itself, and
 * exports only the entry points of its version.
 */
#include "harness/sim/cusim.h"

const int cusim_driver_version = CUSIM_BUILT_VERSION;
