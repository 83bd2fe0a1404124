/* What the resolver asks about: a driver, and an interposer behind the library. Each is a range of
 * addresses with one for each row of the table, and further ones that no row has. */
#ifndef CUSPLICE_TESTS_UNIT_HOOK_WORLD_H
#define CUSPLICE_TESTS_UNIT_HOOK_WORLD_H

#include <cuda.h>
#include <stdbool.h>

enum { WORLD_FUNCTIONS = 4096 };

struct world {
    bool no_driver;       /* libcuda is not there */
    CUresult answer;      /* of the next look-up; `function` is what it finds */
    void *function;       /* also what the driver itself finds */
    bool no_own_look_up;  /* the driver has no second form of cuGetProcAddress */
    CUresult own_answer;  /* of the driver's own look-up */
    void *own_function;   /* what that finds; NULL: the row of the name, if there is one */
    int chained;          /* a row that the interposer stands before; -1: none */
    bool by_export;       /* it only exports that name */
    bool before_launches; /* it stands before launches */
    bool no_stub;         /* all spare stubs are in use */

    int stub_kind;     /* of the last stub; -1: none was made */
    const void *noted; /* a function that is watched, which the interposer did not show */
    int noted_row;
    unsigned looks;      /* at what was loaded meanwhile */
    const char *no_more; /* why nothing is deferred any more */
};
extern struct world world;

extern char world_driver[WORLD_FUNCTIONS], world_interposer[WORLD_FUNCTIONS], world_stub[1],
    world_hook[1], world_hook_first[1], world_hook_second[1];

/* Nothing is unusual, and nothing came yet. */
void world_reset(void);
/* The number of the row; -1: none. */
int world_row(const char *name);
/* The two hooks. */
CUresult world_look(const char *symbol, void **function, int version);
CUresult world_look_second(const char *symbol, void **function, int version);
/* The same from within the interposer. */
void world_look_by_interposer(const char *symbol, void **function, int version);
/* A row of the class PASS. */
extern const int world_passed;

#endif
