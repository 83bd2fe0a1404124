// Takes locks of the library for a test, and releases them when `meanwhile` returns.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_HELD_LOCKS_H
#define CUSPLICE_TESTS_UNIT_STREAM_HELD_LOCKS_H

#include "shim/stream/engine.h"

void hold_gate(void (*meanwhile)(void));
// The lock of the stream's engine and that of its context.
void hold_engine(CUstream stream, CUcontext context, void (*meanwhile)(void));
// Has nobody the lock of the stream's engine? Does a thread wait for it?
bool engine_is_free(CUstream stream, CUcontext context);
bool engine_is_waited_for(CUstream stream, CUcontext context);
// The registry's: asks for the engine of a stream that it does not know. The driver is asked for
// the flags of the stream while the lock is held.
void hold_registry(CUstream stream, CUcontext context);
void hold_context(CUcontext context, void (*meanwhile)(void));
void hold_build(void (*meanwhile)(void));
// As a thread that builds so many nodes.
void hold_priority(uint32_t nodes, void (*meanwhile)(void));
void hold_list(void (*meanwhile)(void));
// Does whoever is about to issue an op or a graph wait now for a graph that is being built?
bool build_has_priority(void);
// Does this thread wait for it, for a nanosecond?
bool waits_for_build(void);
// The same for a thread that remembers how often it has waited for which build.
bool waits_again_for_build(void);
// Threads that have waited for it.
unsigned builds_waited(void);
// Nothing is known of how long builds take, nor of who waits for them.
void build_as_at_start(void);

// How often the calling thread has taken a lock, and how many of them were not an engine's: a build
// with CUS_CHECKS counts. False where it does not.
bool locks_taken(uint64_t *all, uint64_t *others);

#endif
