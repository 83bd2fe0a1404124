/*
 * presets = auto: a preset holds in a process that has loaded a library of a certain name, from the
 * moment on when that library is there. Its rules come behind all others. hook/slots.c calls this
 * wherever new objects were loaded. Rules of presets alone are taken, no sections of steps and no
 * settings; what was decided of a kernel before stays decided.
 */
#ifndef CUSPLICE_PLAN_PRESET_CHOICE_H
#define CUSPLICE_PLAN_PRESET_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which preset a library's path chooses. */
struct cus_preset_choice {
    const char *library; /* a glob (plan/pattern.h) on the whole path; * also matches / */
    const char *preset;
};
/* NULL behind the last row. */
const struct cus_preset_choice *cus_preset_choice_get(unsigned index);

/* An object is loaded from this path. Any thread, also under the loader's lock: only compares. */
void cus_preset_see(const char *path);
/* Adds the rules of the presets that were chosen since the last call. Reads files, so the thread
 * holds no lock but perhaps the loader's. Waits for another thread that does so for 0.1 s at most.
 * Keeps errno. */
void cus_preset_choose(void);
/* Lists the chosen files that had a rule for a kernel that came, each with its library:
 * "nccl.conf (lib/libnccl.so.2), ...". False: none had, and `out` is "". */
bool cus_preset_held(char *out, size_t bytes);
/* Forgets what was chosen. For cus_engine_end. */
void cus_preset_drop(void);

#ifdef __cplusplus
}
#endif

#endif
