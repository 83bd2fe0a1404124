/*
 * Another interposer, in five forms. Each counts the calls that it sees, and prints the counts on
 * stderr at the end.
 *
 *   INTERPOSER_LAUNCHES  answers dlsym and cuGetProcAddress by its own functions for launches and
 *                        allocations, and by the driver's own for all else
 *   INTERPOSER_MEMORY    the same for allocations alone
 *   INTERPOSER_EXPORTS   exports cuLaunchKernel, which calls the next one
 *   INTERPOSER_PROTECTS  does not interpose on the driver: it lets no page become writable
 *   INTERPOSER_REFUSES   does not interpose on the driver: it refuses process_vm_readv, as a filter
 *                        of system calls does
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

static atomic_ulong launches, allocations;

typedef CUresult alloc_fn(CUdeviceptr *at, size_t bytes);
typedef __typeof__(&cuLaunchKernel) launch_fn;

__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "interposer: %lu launches, %lu allocations\n", atomic_load(&launches),
            atomic_load(&allocations));
}

#ifdef INTERPOSER_EXPORTS

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                        void **extra) {
    launch_fn next = (launch_fn)dlsym(RTLD_NEXT, "cuLaunchKernel");
    atomic_fetch_add(&launches, 1);
    return next(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

#elif defined(INTERPOSER_PROTECTS)

int mprotect(void *address, size_t bytes, int protection) {
    (void)address, (void)bytes, (void)protection;
    errno = EACCES;
    return -1;
}

#elif defined(INTERPOSER_REFUSES)

struct iovec;
ssize_t process_vm_readv(pid_t process, const struct iovec *to, unsigned long n_to,
                         const struct iovec *from, unsigned long n_from, unsigned long flags);
ssize_t process_vm_readv(pid_t process, const struct iovec *to, unsigned long n_to,
                         const struct iovec *from, unsigned long n_from, unsigned long flags) {
    (void)process, (void)to, (void)n_to, (void)from, (void)n_from, (void)flags;
    errno = EPERM;
    return -1;
}

#else

typedef void *dlsym_fn(void *handle, const char *name);
typedef __typeof__(&cuGetProcAddress) look_up_fn;

static void *cuda; /* as somebody first looked something up in it */

/* The oldest version of the C library on this machine. */
#if defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#else
#define FIRST_VERSION "GLIBC_2.2.5"
#endif

static dlsym_fn *its(void) {
    static dlsym_fn *found;
    if (!found)
        found = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", FIRST_VERSION);
    return found;
}

#ifdef INTERPOSER_LAUNCHES
static CUresult counted_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **params, void **extra) {
    launch_fn real = (launch_fn)its()(cuda, "cuLaunchKernel");
    atomic_fetch_add(&launches, 1);
    return real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
#endif

static CUresult counted_alloc(CUdeviceptr *at, size_t bytes) {
    atomic_fetch_add(&allocations, 1);
    return ((alloc_fn *)its()(cuda, "cuMemAlloc_v2"))(at, bytes);
}

static CUresult look_up(const char *name, void **found, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status);

static void *own(const char *name) {
#ifdef INTERPOSER_LAUNCHES
    if (strcmp(name, "cuLaunchKernel") == 0)
        return (void *)counted_launch;
#endif
    if (strcmp(name, "cuMemAlloc") == 0 || strcmp(name, "cuMemAlloc_v2") == 0)
        return (void *)counted_alloc;
    if (strcmp(name, "cuGetProcAddress_v2") == 0)
        return (void *)look_up;
    return NULL;
}

static CUresult look_up(const char *name, void **found, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    look_up_fn real = (look_up_fn)its()(cuda, "cuGetProcAddress_v2");
    CUresult result = real(name, found, version, flags, status);
    bool itself = strcmp(name, "cuGetProcAddress") == 0 && version >= 12000;
    void *mine = itself ? (void *)look_up : own(name);
    if (result == CUDA_SUCCESS && mine)
        *found = mine;
    return result;
}

/* Names of the driver are looked up in libcuda alone. */
__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name) {
    if (strncmp(name, "cu", 2) != 0 || !handle || handle == RTLD_NEXT)
        return its()(handle, name);
    void *found = its()(handle, name), *mine = found ? own(name) : NULL;
    if (mine)
        cuda = handle;
    return mine ? mine : found;
}

#endif
