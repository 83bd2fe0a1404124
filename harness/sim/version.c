/*
 * Which driver this library is built as. Each of the libraries in BUILD compiles this file for
 * itself and exports the entry points of that version alone.
 */
#include "harness/sim/cusim.h"

const int cusim_driver_version = CUSIM_BUILT_VERSION;
