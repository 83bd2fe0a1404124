/*
 * The options of a process, from one table (options.def): the struct, the parser, the environment
 * variables, the help text and config/cusplice.conf are all made from it.
 *
 * Sources, weakest first: built-in values, what `cusplice run` offers (a cache folder, presets),
 * /etc/cusplice.conf, $XDG_CONFIG_HOME/cusplice/cusplice.conf, the file that CUSPLICE_CONFIG names,
 * the environment (CUSPLICE_<KEY>). CUSPLICE=off sets mode = off, whatever else is set.
 */
#ifndef CUSPLICE_BASE_OPTIONS_H
#define CUSPLICE_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cus_mode {
    CUS_MODE_OFF,
    CUS_MODE_OBSERVE,
    CUS_MODE_EAGER,
    CUS_MODE_PIECEWISE, /* this mode and the following ones make graphs */
    CUS_MODE_FULL,
    CUS_MODE_FULL_DECODE_ONLY,
    CUS_MODE_FULL_AND_PIECEWISE,
    CUS_MODE_VERIFY /* as `verify_mode`; also compares graphs with single launches */
};
enum cus_profile { CUS_PROFILE_EAGER, CUS_PROFILE_IGNORE };
/* The modes that make graphs, in the order of enum cus_mode from CUS_MODE_PIECEWISE on. */
enum cus_graphs {
    CUS_GRAPHS_PIECEWISE,
    CUS_GRAPHS_FULL,
    CUS_GRAPHS_FULL_DECODE_ONLY,
    CUS_GRAPHS_FULL_AND_PIECEWISE
};
/* A fault that mode verify puts into graphs, to show that it would be found. */
enum cus_plant { CUS_PLANT_NONE, CUS_PLANT_UNPATCHED, CUS_PLANT_DROPPED, CUS_PLANT_SWAPPED };
/* Are presets chosen by the libraries that the program loads (plan/preset_choice.h)? */
enum cus_presets { CUS_PRESETS_OFF, CUS_PRESETS_AUTO };

/* The C type of each kind of option. */
typedef enum cus_mode cus_option_MODE;
typedef enum cus_profile cus_option_PROFILE;
typedef enum cus_graphs cus_option_GRAPHS;
typedef enum cus_plant cus_option_PLANT;
typedef enum cus_presets cus_option_PRESETS;
typedef uint32_t cus_option_UINT;
typedef bool cus_option_BOOL;
typedef const char *cus_option_PATH; /* "": none is set */
typedef const char *cus_option_LOG;

struct cus_options {
#define CUS_OPTION(key, kind, value, min, max, text) cus_option_##kind key;
#include "shim/base/options.def"
    bool cache_offered; /* cache_dir is what `cusplice run` offered: nobody asked for a cache */
    char *owned[48];    /* texts that the fields above point to; only for cus_options_free */
};

/*
 * The options of this process. The first call loads them, on any thread; they never change
 * afterwards. Never NULL, never fails: each problem is logged once, and the default remains. In a
 * setuid program the mode is off and no source is read.
 */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* in C a struct and a function may share a name */
#endif
const struct cus_options *cus_options(void);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* Fills *out from the built-in values, the files and the environment. Calls `problem` (may be
 * NULL) for each problem and keeps the weaker source's value. Returns the number of problems.
 * `secure`: the process has raised privileges. */
int cus_options_load(struct cus_options *out, bool secure, cus_problem_fn *problem, void *context);
void cus_options_free(struct cus_options *options);
/* Forgets the options of the process: the next call of cus_options loads them anew. For
 * cus_engine_end. */
void cus_options_drop(void);

/* Sets one key, as a file or the environment gives it. False: *out is unchanged, and `problem`
 * was called. An old name sets the key too, and also counts as a problem. */
bool cus_options_set(struct cus_options *out, const struct cus_setting *setting,
                     cus_problem_fn *problem, void *context);

/* ---- the table, for help texts and look-ups ---- */

struct cus_option_row {
    const char *key;
    const char *value; /* the built-in value, as a user would write it */
    const char *text;  /* what it does; \n separates lines */
};
/* NULL after the last row. */
const struct cus_option_row *cus_options_row(unsigned index);
/* The old names, each with the present one. NULL after the last. */
struct cus_option_old {
    const char *old, *key;
};
const struct cus_option_old *cus_options_old(unsigned index);
/* The present name of an option with another old name; else `key`. */
const char *cus_options_key(const char *key);
/* The values that row `index` allows: "50 .. 1000000", "off, observe, eager, piecewise", "yes,
 * no", "a path". */
void cus_options_allowed(unsigned index, char *out, size_t bytes);
/* These values one by one, then NULL, where row `index` allows words alone; else NULL. */
const char *const *cus_options_words(unsigned index);
/* Writes the value of row `index` into `out`, as a user would write it. */
void cus_options_show(const struct cus_options *options, unsigned index, char *out, size_t bytes);
const char *cus_mode_name(enum cus_mode mode);
/* The mode that decides how ops are put into graphs: `mode`, or `verify_mode` in mode verify. */
enum cus_mode cus_options_graphs(const struct cus_options *options);

#ifdef __cplusplus
}
#endif

#endif
