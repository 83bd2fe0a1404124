/*
 * The events that nodes of executable graphs hold. The driver refuses another event for a node
 * whose event was destroyed (tests/gpu/DRIVER.md), so the program's destroy of such an event is put
 * off until no node holds it (stream/event_calls.c). Any thread.
 */
#ifndef CUSPLICE_GRAPH_HELD_H
#define CUSPLICE_GRAPH_HELD_H

#include "shim/api/driver.h"

#include <stdbool.h>

/* A node holds the event, once more or once less. False: no memory, and nothing is noted. */
bool cus_held_add(CUevent event);
void cus_held_drop(CUevent event);
bool cus_held(CUevent event);

#endif
