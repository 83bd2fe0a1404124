/*
 * A driver that does nothing but log: every symbol of cuda_api.def writes its name and its first
 * six arguments, and some return a value. It also has entry points that the table does not know.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/seam/seam_log.h"

typedef uint64_t word;

static struct {
    char name[64];
    unsigned code;
} results[16];

static void (*callback)(void);
static word context = 0xc0;

/* ---- what the tests steer by ---- */

/* From now on the function answers this. */
void fake_result(const char *name, unsigned code) {
    for (unsigned i = 0; i < 16; i++) {
        if (!results[i].name[0] || strcmp(results[i].name, name) == 0) {
            strcpy(results[i].name, name);
            results[i].code = code;
            return;
        }
    }
}

/* Called once from inside the next cuStreamSynchronize. */
void fake_callback(void (*function)(void)) {
    __atomic_store_n(&callback, function, __ATOMIC_RELEASE);
}

void fake_context(word current) {
    context = current;
}

/* Once, from inside the call. */
static void call_back(void) {
    void (*function)(void) = __atomic_exchange_n(&callback, NULL, __ATOMIC_ACQ_REL);
    if (function)
        function();
}

static word loads; /* by one thread alone */
static int holds;  /* on the primary context; by one thread alone */

/* As a library takes and gives them that nobody sees. */
void fake_hold(int more) {
    holds += more;
}

static unsigned answer(const char *name, word a0, word a1, word a2, word a3, word a4, word a5) {
    seam_log("cuda %s %lx %lx %lx %lx %lx %lx", name, a0, a1, a2, a3, a4, a5);
    for (unsigned i = 0; i < 16 && results[i].name[0]; i++) {
        if (strcmp(results[i].name, name) == 0)
            return results[i].code;
    }
    if (strcmp(name, "cuModuleGetFunction") == 0)
        *(word *)a0 = 0xf1;
    if (strcmp(name, "cuLibraryGetKernel") == 0)
        *(word *)a0 = 0xe1;
    if (strcmp(name, "cuKernelGetFunction") == 0)
        *(word *)a0 = 0xf2;
    if (strncmp(name, "cuModuleLoad", 12) == 0 || strncmp(name, "cuLibraryLoad", 13) == 0)
        *(word *)a0 = 0xa0 + loads++;
    if (strcmp(name, "cuLibraryGetModule") == 0)
        *(word *)a0 = 0xb0;
    if (strcmp(name, "cuModuleGetFunctionCount") == 0)
        *(uint32_t *)a0 = 2;
    if (strcmp(name, "cuModuleEnumerateFunctions") == 0) {
        for (unsigned i = 0; a0 && i < 2 && i < (uint32_t)a1; i++)
            ((word *)a0)[i] = 0xf3 + i;
    }
    if (strcmp(name, "cuLibraryGetKernelCount") == 0)
        *(uint32_t *)a0 = 2;
    if (strcmp(name, "cuLibraryEnumerateKernels") == 0) {
        ((word *)a0)[0] = 0xe2;
        ((word *)a0)[1] = 0xe3;
    }
    if (strcmp(name, "cuStreamSynchronize") == 0)
        call_back();
    if (strcmp(name, "cuDevicePrimaryCtxRetain") == 0) {
        *(word *)a0 = 0xc1;
        holds++;
    }
    if (strcmp(name, "cuDevicePrimaryCtxGetState") == 0)
        *(int *)a2 = holds > 0;
    if (strncmp(name, "cuDevicePrimaryCtxRelease", 25) == 0)
        holds--;
    return 0;
}

unsigned cuGetProcAddress(const char *name, void **function, int version, word flags);
unsigned cuGetProcAddress_v2(const char *name, void **function, int version, word flags,
                             unsigned *status);
unsigned cuLaunchKernel(word f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, word stream, word params, word extra) {
    seam_log("cuda cuLaunchKernel %lx %u %u %u %u %u %u %u %lx %lx %lx", f, gx, gy, gz, bx, by, bz,
             shared, stream, params, extra);
    call_back();
    return 0;
}

/* Asked before every touch; not worth a line. */
unsigned cuCtxGetCurrent(word *current) {
    *current = context;
    return 0;
}

/* The rest of the table; symbols with a body of their own are left out by the macros below. */
#define cuLaunchKernel SEAM_HAS_cuLaunchKernel
#define cuCtxGetCurrent SEAM_HAS_cuCtxGetCurrent
#define cuGetProcAddress SEAM_HAS_cuGetProcAddress
#define cuGetProcAddress_v2 SEAM_HAS_cuGetProcAddress_v2
#define CUS_API(symbol, class, scope, arg, abi, act, reason) SEAM_FUNCTION(symbol)
#define SEAM_FUNCTION(symbol)                                                                      \
    unsigned symbol(word a0, word a1, word a2, word a3, word a4, word a5);                         \
    unsigned symbol(word a0, word a1, word a2, word a3, word a4, word a5) {                        \
        return answer(#symbol, a0, a1, a2, a3, a4, a5);                                            \
    }
#include "shim/api/cuda_api.def"
#undef cuLaunchKernel
#undef cuCtxGetCurrent
#undef cuGetProcAddress
#undef cuGetProcAddress_v2

/* ---- entry points that the table does not know ---- */

double cuFutureMixed(int a, double b, const char *c, float d, long e, double f, unsigned char g,
                     double h, long i, double j, long k, long l, float m, double n);
double cuFutureMixed(int a, double b, const char *c, float d, long e, double f, unsigned char g,
                     double h, long i, double j, long k, long l, float m, double n) {
    seam_log("cuda cuFutureMixed %d %g %s %g %ld %g %u %g %ld %g %ld %ld %g %g", a, b, c, (double)d,
             e, f, g, h, i, j, k, l, (double)m, n);
    return b + n;
}

/* A variadic function is told by rax how many vector registers hold arguments. */
int cuFutureVariadic(int count, ...);
int cuFutureVariadic(int count, ...) {
    double sum = 0;
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        sum += va_arg(list, double);
    va_end(list);
    seam_log("cuda cuFutureVariadic %d %g", count, sum);
    return (int)sum;
}

unsigned cuGraphicsGLRegisterBuffer(word a0, word a1, word a2);
unsigned cuGraphicsGLRegisterBuffer(word a0, word a1, word a2) {
    return answer("cuGraphicsGLRegisterBuffer", a0, a1, a2, 0, 0, 0);
}

unsigned cuGetProcAddress_v3(word a0, word a1);
unsigned cuGetProcAddress_v3(word a0, word a1) {
    return answer("cuGetProcAddress_v3", a0, a1, 0, 0, 0, 0);
}

/* More of them than the library has stubs for; by cuGetProcAddress only. */
#if defined(__x86_64__)
#define RETURN_0 "xorl %eax, %eax\nret\n"
#else
#define RETURN_0 "mov w0, #0\nret\n"
#endif
__asm__(".p2align 4\n.globl fake_many\n.hidden fake_many\nfake_many:\n"
        ".rept 1000\n.p2align 4\n" RETURN_0 ".endr\n");
extern const char fake_many[];

/* ---- look-ups ---- */

/* The newest function of a name: version suffix, then that of per-thread streams. */
static void *newest(const char *name, word flags) {
    static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
    static const char *const twins[] = {"_ptsz", "_ptds", ""};
    char symbol[128];
    Dl_info self;
    dladdr((void *)answer, &self);
    void *handle = dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    for (unsigned twin = flags & 2 ? 0 : 2; twin < 3; twin++) {
        for (unsigned version = 0; version < 4; version++) {
            snprintf(symbol, sizeof symbol, "%s%s%s", name, versions[version], twins[twin]);
            void *found = dlsym(handle, symbol);
            if (found)
                return found;
        }
    }
    dlerror();
    return NULL;
}

unsigned cuGetProcAddress(const char *name, void **function, int version, word flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

unsigned cuGetProcAddress_v2(const char *name, void **function, int version, word flags,
                             unsigned *status) {
    seam_log("cuda cuGetProcAddress %s %d %lx", name, version, flags);
    int number;
    void *found;
    if (strcmp(name, "cuGetProcAddress") == 0)
        found = version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2;
    else if (sscanf(name, "cuMany%d", &number) == 1)
        found = (void *)(fake_many + 16 * number);
    else
        found = newest(name, flags);
    if (status)
        *status = found ? 0 : 1;
    if (function)
        *function = found;
    return found || status ? 0 : 500;
}

/* Does the driver find itself, and not the wrapper, when it looks up its own function? */
bool fake_self_lookup(void) {
    Dl_info self;
    dladdr((void *)answer, &self);
    void *handle = dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    void *found = dlsym(handle, "cuLaunchKernel");
    return found == (void *)cuLaunchKernel;
}
