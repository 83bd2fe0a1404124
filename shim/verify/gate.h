/*
 * The gate of mode verify. While a thread verifies a graph, no other thread may write memory, since
 * the write would be lost when memory is restored. Each hook that acts enters the gate and leaves
 * it. While the gate is shut, a thread waits in front of it for at most two seconds, and then goes
 * on. In other modes only the watchdog uses the gate, which is then open. Any thread. Innermost: no
 * lock is taken behind the gate.
 */
#ifndef CUSPLICE_VERIFY_GATE_H
#define CUSPLICE_VERIFY_GATE_H

#include <stdbool.h>

/* Called around what a thread does inside a hook, and by the watchdog. Not nested. */
void cus_gate_enter(void);
void cus_gate_leave(void);
/* As enter, without waiting. False: the gate is shut. */
bool cus_gate_try(void);
/* Replaces leave if the thread goes on into the driver and does not come back here. */
void cus_gate_pass(void);

/* Shuts the gate for the calling thread, which is inside. False: others are inside, or were a
 * moment ago; the gate stays open. */
bool cus_gate_shut(void);
void cus_gate_open(void);
/* True: since the gate was shut, a thread has gone in after its two seconds. */
bool cus_gate_forced(void);

#endif
