/*
 * The gate of mode verify: while a thread verifies a graph, no other thread may change memory, for
 * what it wrote would be lost when memory is set back.
 *
 * Every hook that acts goes through the gate on its way in and out; while it is shut, others wait
 * in front of it, two seconds at most: nothing that a program does may depend on us for longer.
 * Of other modes the watchdog alone comes here, and finds it open. Any thread; innermost: no lock
 * is taken behind it.
 */
#ifndef CUSPLICE_VERIFY_GATE_H
#define CUSPLICE_VERIFY_GATE_H

#include <stdbool.h>

/* Around what a thread does inside a hook, or on its own (the watchdog). Not nested. */
void cus_gate_enter(void);
void cus_gate_leave(void);
/* As enter, without waiting. False: the gate is shut. */
bool cus_gate_try(void);
/* In place of leave, where the thread goes on into the driver and does not come back here. */
void cus_gate_pass(void);

/* The calling thread, which is inside, wants to be alone. False: others are inside, or were a
 * moment ago; the gate stays open. */
bool cus_gate_shut(void);
void cus_gate_open(void);
/* Has one gone in, after two seconds, since the gate was shut? */
bool cus_gate_forced(void);

#endif
