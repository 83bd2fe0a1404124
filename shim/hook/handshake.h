/*
 * The hand-shake with `cusplice run`: where CUSPLICE_HANDSHAKE names a file, one short line per
 * stage is appended to it, so that the launcher can say afterwards how far the library came in each
 * process. The launcher makes the file and removes it: it is never made here.
 *
 *   PID there            the library is in a process; by the first of them alone
 *   PID loaded           the program asked for CUDA through one of the hooks, and libcuda is there
 *   PID on               cuInit succeeded and the engine runs
 *   PID off              cuInit succeeded and the mode is off
 *   PID verified N BAD   mode verify: graph launches verified, and how many of them differed
 *   PID exit OPS GRAPHS  ops seen; the program's own graph launches
 */
#ifndef CUSPLICE_HOOK_HANDSHAKE_H
#define CUSPLICE_HOOK_HANDSHAKE_H

#include <stdint.h>

void cus_handshake_loaded(void);
void cus_handshake_on(void);
void cus_handshake_off(void);
void cus_handshake_verified(uint64_t launches, uint64_t different);
void cus_handshake_exit(uint64_t ops, uint64_t graphs);

#endif
