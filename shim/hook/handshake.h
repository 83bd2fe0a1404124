/*
 * The hand-shake with `cusplice run`. If CUSPLICE_HANDSHAKE names a file, the library appends one
 * short line per stage. From these lines the launcher says how far the library came in each
 * process. The launcher makes and removes the file; the library never makes it.
 *
 *   PID there            the library is in a process; written by the first process alone
 *   PID absent           the program opened libcuda, and the dynamic loader did not find it
 *   PID loaded           the program asked for CUDA through a hook, and libcuda is there
 *   PID on [RANK]        cuInit succeeded and the engine runs; RANK: the rank + 1, if one is known
 *   PID off              cuInit succeeded and the mode is off
 *   PID verified N BAD   mode verify: graph launches verified, and how many of them differed
 *   PID ran RANK MS OPS IN TEXT   with why = yes: milliseconds since the process's start, ops, ops
 *                        in graphs; TEXT is the program's name, its GPU (stats/gpus.h) and the
 *                        costliest break, with tabs between them
 *   PID exit OPS GRAPHS  ops seen; the program's own graph launches
 *   PID front FILE       another interposer stands in front of the library (hook/others.h)
 *   PID behind FILE      an interposer stands behind the library
 *   PID led FILE         an object was bound past the library, and its slots were changed
 *   PID passes WHY       the library defers nothing any more
 *   PID presets TEXT     files of presets that loaded libraries chose, and that named a kernel
 *   PID unmet TEXT       what the user asked for and the program gave no occasion to
 *   PID steps HAD FROM   recording was to begin with step FROM; the program had so many
 */
#ifndef CUSPLICE_HOOK_HANDSHAKE_H
#define CUSPLICE_HOOK_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

enum { CUS_HANDSHAKE_LINE = 576 }; /* a line's length in bytes, at most */

enum cus_found {
    CUS_FOUND_FRONT,
    CUS_FOUND_BEHIND,
    CUS_FOUND_LED,
    CUS_FOUND_PASSES,
    CUS_FOUND_PRESETS
};

void cus_handshake_absent(void); /* written once */
void cus_handshake_loaded(void);
void cus_handshake_on(void);
void cus_handshake_off(void);
/* False: there is no launcher that hears it. */
bool cus_handshake_verified(uint64_t launches, uint64_t different);
struct cus_report;
void cus_handshake_ran(uint64_t ops, uint64_t in_graphs, const struct cus_report *report);
void cus_handshake_exit(uint64_t ops, uint64_t graphs);
/* False: there is no launcher that could tell. */
bool cus_handshake_unmet(const char *text);
bool cus_handshake_steps(uint64_t had, uint64_t from);
void cus_handshake_found(enum cus_found what, const char *text);

#endif
