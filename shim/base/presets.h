/*
 * The installed presets (config/presets): files of rules that settings may name without a path.
 * They lie in a folder beside the library or the launcher that asks. config_files.c calls this.
 * Any thread, no lock, no allocation.
 */
#ifndef CUSPLICE_BASE_PRESETS_H
#define CUSPLICE_BASE_PRESETS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The folder with their files. False: there is none. */
bool cus_preset_home(char *out, size_t bytes);
/* The file of the preset `name`. False: there is none. */
bool cus_preset_find(const char *name, char *out, size_t bytes);
/* The name of the preset that is nearest to `name`; "": there are no presets. */
void cus_preset_nearest(const char *name, char *out, size_t bytes);
/* True: the path is that of a preset, as cus_preset_find gives it. */
bool cus_preset_is(const char *path);

/* NULL: the folder beside the library. Tests set another one. */
extern const char *cus_preset_folder;

#ifdef __cplusplus
}
#endif

#endif
