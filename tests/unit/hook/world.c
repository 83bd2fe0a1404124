/* The resolver itself, with answers of a test in place of what the loader and the driver say. */
#include "shim/hook/resolve.c"

#include "tests/unit/hook/world.h"

struct world world;
char world_driver[WORLD_FUNCTIONS], world_interposer[WORLD_FUNCTIONS], world_stub[1], world_hook[1],
    world_hook_first[1], world_hook_second[1];
const int world_passed = CUS_ROW_cuGetErrorName;

/* Every row has a hook; the look-ups have their own, so that a test can tell them. */
#pragma GCC diagnostic ignored "-Woverride-init"
void *const cus_entry_hooks[CUS_API_ROWS] = {
    [0 ... CUS_API_ROWS - 1] = world_hook,
    [CUS_ROW_cuGetProcAddress] = world_hook_first,
    [CUS_ROW_cuGetProcAddress_v2] = world_hook_second,
    [CUS_ROW_cuGetErrorName] = NULL,
};
void *cus_real_functions[CUS_API_ROWS + CUS_ENTRY_SPARE];

static const struct cus_others others;
static const struct cus_other interposer;

static bool is_in(const char *range, const void *address) {
    const char *at = address;
    return at >= range && at < range + WORLD_FUNCTIONS;
}

static CUresult look(const char *symbol, void **function, int version, cuuint64_t flags) {
    (void)symbol, (void)version, (void)flags;
    if (function)
        *function = world.function;
    return world.answer;
}

static CUresult look_second(const char *symbol, void **function, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult *status) {
    (void)status;
    return look(symbol, function, version, flags);
}

/* The driver's own look-up, past the interposer. */
static CUresult look_own(const char *symbol, void **function, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult *status) {
    (void)version, (void)flags, (void)status;
    int row = world_row(symbol);
    if (world.own_answer == CUDA_SUCCESS)
        *function = world.own_function                        ? world.own_function
                    : strcmp(symbol, "cuGetProcAddress") == 0 ? world_driver + WORLD_FUNCTIONS - 1
                    : row >= 0                                ? world_driver + row
                                                              : NULL;
    return world.own_answer;
}

void world_reset(void) {
    world = (struct world){.chained = -1, .stub_kind = -1};
    cus_real_functions[CUS_ROW_cuGetProcAddress] = (void *)look;
    cus_real_functions[CUS_ROW_cuGetProcAddress_v2] = (void *)look_second;
}

int world_row(const char *name) {
    return cus_api_find(name);
}

CUresult world_look(const char *symbol, void **function, int version) {
    return cus_hook_cuGetProcAddress(symbol, function, version, 0);
}

CUresult world_look_second(const char *symbol, void **function, int version) {
    CUdriverProcAddressQueryResult status;
    return cus_hook_cuGetProcAddress_v2(symbol, function, version, 0, &status);
}

void world_look_by_interposer(const char *symbol, void **function, int version) {
    substitute(world_interposer, symbol, function, version, 0);
}

bool cus_real_find(void) {
    return !world.no_driver;
}

unsigned cus_real_absent(void) {
    return CUDA_ERROR_NOT_INITIALIZED;
}

int cus_real_row(const void *function, const char *name) {
    (void)name;
    const char *range = is_in(world_driver, function) ? world_driver : world_interposer;
    long row = (const char *)function - range;
    bool real = is_in(world_driver, function) || row == world.chained;
    return real && row < CUS_API_ROWS ? (int)row : -1;
}

bool cus_real_holds(const void *address) {
    return is_in(world_driver, address);
}

void *cus_real_own(unsigned row) {
    if (row != CUS_ROW_cuGetProcAddress_v2)
        return world_driver + row;
    return world.no_own_look_up ? NULL : (void *)look_own;
}

bool cus_real_is_chained(unsigned row) {
    return (int)row == world.chained;
}

bool cus_real_is_chained_by_export(unsigned row) {
    return (int)row == world.chained && world.by_export;
}

const struct cus_others *cus_real_others(void) {
    return &others;
}

const char *cus_real_before_launches(int *row) {
    *row = CUS_ROW_cuLaunchKernel;
    return world.before_launches ? "interposer" : NULL;
}

const struct cus_other *cus_others_behind(const struct cus_others *in, const void *address) {
    return in == &others && is_in(world_interposer, address) ? &interposer : NULL;
}

void cus_others_note(const void *function, unsigned row) {
    world.noted = function;
    world.noted_row = (int)row;
}

void *cus_spare_stub(void *function, const char *name, unsigned kind) {
    (void)function, (void)name;
    if (world.no_stub)
        return NULL;
    world.stub_kind = (int)kind;
    return world_stub;
}

void cus_routes_look_later(void) {
    world.looks++;
}

void cus_lifecycle_defer_off_later(const char *why) {
    world.no_more = why;
}
