/* What slots.c asks about: the objects that the loader has, the driver's functions, and who else
 * stands before the driver. A test makes up all of them. */
#ifndef CUSPLICE_TESTS_UNIT_HOOK_SLOTS_WORLD_H
#define CUSPLICE_TESTS_UNIT_HOOK_SLOTS_WORLD_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/hook/others.h"

enum { SLOTS_FUNCTIONS = 4096, SLOTS_OBJECTS = 16, SLOTS_CHANGES = 8, SLOTS_FOUND = 16 };

struct slots_world {
    const struct dl_phdr_info *objects[SLOTS_OBJECTS];
    unsigned n;
    uint64_t adds;         /* the loader's count of added objects */
    size_t bytes;          /* of what the loader says of an object */
    void (*between)(void); /* called once, after the next walk */
    void (*within)(void);  /* called once, after the next object */
    unsigned walks;
    const void *library, *dlsym, *cuda; /* an address of each */
    bool no_mprotect;                   /* it fails */
    int read_error;                     /* data cannot be read, for this reason */
    size_t read_most;                   /* bytes at once; 0: all */
    const char *route;                  /* the library with a private route, by its file */

    int version; /* of the last look-up */
    struct {
        uintptr_t at;
        size_t bytes;
        int prot;
    } changes[SLOTS_CHANGES]; /* of the protection of memory */
    unsigned n_changes;
    char found[SLOTS_FOUND][256]; /* objects that were led here */
    unsigned n_found;
    const char *seen; /* the last path that presets were asked about */
    unsigned chosen;  /* how often presets were chosen */
};
extern struct slots_world slots_world;
extern struct cus_others slots_others;

/* The driver's functions, one for each row and further ones; what a look-up makes of each; the hook
 * of each row but slots_passed. */
extern char slots_driver[SLOTS_FUNCTIONS], slots_resolved[1], slots_hook[1];
extern const int slots_passed;
/* What the library has in place of the loader's functions. */
extern void *const slots_loader[CUS_LOADERS];
/* The relocations that hold an address of a function: of a call, of data by name, of a word. */
extern const unsigned slots_types[3];

void slots_world_reset(void);
/* Other threads are inside a dlopen, this many. */
void slots_world_opening(unsigned threads);

#endif
