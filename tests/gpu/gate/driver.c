/*
 * Finds the driver by dlopen and dlsym, so that a program needs no libcuda when it is linked. Also
 * holds the kernels of the programs that measure the driver. The first thread calls
 * gate_driver_open once; this file never calls the driver except for the name of an error.
 */
#include "tests/gpu/gate/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct gate_driver cu;

static const char *const entry_names[] = {
#define CUS_API(symbol, class, scope, arg, abi, act, reason) #symbol,
#define CUS_API_NEWER(...)
#include "shim/api/cuda_api.def"
};
enum { ENTRIES = sizeof entry_names / sizeof *entry_names };
static void *entries[ENTRIES];

static CUresult missing(void) {
    return CUDA_ERROR_NOT_FOUND;
}

bool gate_driver_open(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        return false;
    }
    for (int i = 0; i < ENTRIES; i++)
        entries[i] = dlsym(library, entry_names[i]);
    unsigned i = 0;
#define CUS_API(symbol, class, scope, arg, abi, act, reason)                                       \
    cu.symbol = (__typeof__(cu.symbol))(entries[i] ? entries[i] : (void *)missing);                \
    i++;
#define CUS_API_NEWER(...)
#include "shim/api/cuda_api.def"
    return true;
}

bool gate_driver_has(const char *symbol) {
    for (int i = 0; i < ENTRIES; i++)
        if (strcmp(entry_names[i], symbol) == 0)
            return entries[i] != NULL;
    return true; /* several calls in one row */
}

const char *gate_code_name(CUresult code) {
    static _Thread_local char text[80];
    const char *name = NULL;
    if (cu.cuGetErrorName(code, &name) == CUDA_SUCCESS && name)
        snprintf(text, sizeof text, "%d %s", (int)code, name);
    else
        snprintf(text, sizeof text, "%d", (int)code);
    return text;
}

/* The kernels, as text that every driver translates; the same names and parameters as in kernels/.
 */
const char gate_ptx[] =
    GATE_PTX_HEAD ".visible .global .align 4 .u32 gate_word;\n"
                  ".visible .entry touch(.param .u64 p)\n{\n"
                  "  .reg .b64 %a;\n  .reg .b32 %v;\n"
                  "  ld.param.u64 %a, [p];\n"
                  "  cvta.to.global.u64 %a, %a;\n"
                  "  atom.global.add.u32 %v, [%a], 1;\n"
                  "  ret;\n}\n"
                  ".visible .entry set_flag(.param .u64 p, .param .u32 value)\n{\n"
                  "  .reg .b64 %a;\n  .reg .b32 %v;\n"
                  "  ld.param.u64 %a, [p];\n  ld.param.u32 %v, [value];\n"
                  "  cvta.to.global.u64 %a, %a;\n"
                  "  st.volatile.global.u32 [%a], %v;\n  membar.sys;\n"
                  "  ret;\n}\n"
                  ".visible .entry spin_until(.param .u64 p, .param .u32 value,\n"
                  "  .param .u64 rounds, .param .u64 out)\n{\n"
                  "  .reg .b64 %a, %n, %o;\n  .reg .b32 %v, %w;\n"
                  "  .reg .pred %go;\n"
                  "  ld.param.u64 %a, [p];\n  ld.param.u32 %v, [value];\n"
                  "  ld.param.u64 %n, [rounds];\n  ld.param.u64 %o, [out];\n"
                  "  cvta.to.global.u64 %a, %a;\n"
                  "  cvta.to.global.u64 %o, %o;\n"
                  "again:\n"
                  "  ld.volatile.global.u32 %w, [%a];\n"
                  "  setp.ge.u32 %go, %w, %v;\n"
                  "  @%go bra done;\n"
                  "  add.s64 %n, %n, -1;\n"
                  "  setp.ne.s64 %go, %n, 0;\n"
                  "  @%go bra again;\n"
                  "done:\n"
                  "  mov.u32 %w, 1;\n"
                  "  st.global.u32 [%o], %w;\n"
                  "  ret;\n}\n";
