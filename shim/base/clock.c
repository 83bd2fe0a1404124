/*
 * The clock that a tool moves. Off in every process that the library is preloaded into.
 */
#include "shim/base/clock.h"

struct cus_virtual_clock cus_virtual;
