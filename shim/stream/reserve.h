/*
 * Makes room for graphs (reserve.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_RESERVE_H
#define CUSPLICE_STREAM_RESERVE_H

#include "shim/stream/state.h"

/* The host has waited: takes back freed room and makes room for wanted graphs. No lock held. */
void cus_room_waited(struct cus_engine *engine);

#endif
