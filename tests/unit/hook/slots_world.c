/* The search for slots itself, over objects of a test in place of those of the loader. */
#define _GNU_SOURCE
#include "tests/unit/hook/slots_world.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

static int walk(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);
static int protect(void *at, size_t bytes, int prot);
static ssize_t read_data(pid_t pid, const struct iovec *to, unsigned long n_to,
                         const struct iovec *from, unsigned long n_from, unsigned long flags);

#define dl_iterate_phdr walk
#define mprotect protect
#define process_vm_readv read_data
/* clang-format off */
#include "shim/hook/slots.c"
#include "shim/hook/elf.c" /* behind the other: it forbids names of its headers */
/* clang-format on */
#undef dl_iterate_phdr
#undef mprotect
#undef process_vm_readv

struct slots_world slots_world;
struct cus_others slots_others;
struct cus_process cus_process;
char slots_driver[SLOTS_FUNCTIONS], slots_resolved[1], slots_hook[1];
const int slots_passed = CUS_ROW_cuGetErrorName;
const unsigned slots_types[3] = {CALL_SLOT, DATA_SLOT, DATA_WORD};

#pragma GCC diagnostic ignored "-Woverride-init"
void *const cus_entry_hooks[CUS_API_ROWS] = {
    [0 ... CUS_API_ROWS - 1] = slots_hook,
    [CUS_ROW_cuGetErrorName] = NULL,
};
#define FUNCTION(name) (void *)name,
void *const slots_loader[CUS_LOADERS] = {CUS_LOADER_FUNCTIONS(FUNCTION)};
#undef FUNCTION

static int walk(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data) {
    int result = 0;
    slots_world.walks++;
    for (unsigned i = 0; i < slots_world.n && !result; i++) {
        struct dl_phdr_info info = *slots_world.objects[i];
        info.dlpi_adds = slots_world.adds;
        result = callback(&info, slots_world.bytes, data);
        void (*within)(void) = slots_world.within;
        slots_world.within = NULL;
        if (within)
            within();
    }
    void (*between)(void) = slots_world.between;
    slots_world.between = NULL;
    if (between)
        between();
    return result;
}

static int protect(void *at, size_t bytes, int prot) {
    unsigned n = slots_world.n_changes++;
    if (n < SLOTS_CHANGES) {
        slots_world.changes[n].at = (uintptr_t)at;
        slots_world.changes[n].bytes = bytes;
        slots_world.changes[n].prot = prot;
    }
    errno = EACCES;
    return slots_world.no_mprotect ? -1 : mprotect(at, bytes, prot);
}

/* As the kernel does it, within this process; qemu has no such call. */
static ssize_t read_data(pid_t pid, const struct iovec *to, unsigned long n_to,
                         const struct iovec *from, unsigned long n_from, unsigned long flags) {
    size_t most = slots_world.read_most, bytes = from->iov_len;
    bool valid = pid == getpid() && n_to == 1 && n_from == 1 && !flags && to->iov_len == bytes &&
                 bytes <= sizeof chunk;
    errno = valid ? slots_world.read_error : EINVAL;
    if (errno)
        return -1;
    if (most && bytes > most)
        bytes = most;
    memcpy(to->iov_base, from->iov_base, bytes);
    return (ssize_t)bytes;
}

void slots_world_reset(void) {
    slots_world = (struct slots_world){.bytes = sizeof(struct dl_phdr_info), .version = -1};
    slots_others = (struct cus_others){.n = 0};
    __atomic_store_n(&seen_adds, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&why_given, false, __ATOMIC_RELAXED);
    slots_world_opening(0);
}

void slots_world_opening(unsigned threads) {
    __atomic_store_n(&cus_process.opening, threads, __ATOMIC_SEQ_CST);
}

bool cus_real_holds(const void *address) {
    const char *at = address;
    return at >= slots_driver && at < slots_driver + SLOTS_FUNCTIONS;
}

int cus_real_row(const void *function, const char *name) {
    (void)name;
    long row = (const char *)function - slots_driver;
    return row < CUS_API_ROWS ? (int)row : -1;
}

/* slots.c asks for cuInit, to know where libcuda is. */
void *cus_real_own(unsigned row) {
    return row == CUS_ROW_cuInit ? (void *)(uintptr_t)slots_world.cuda : NULL;
}

void *cus_dlsym_find(void) {
    return (void *)(uintptr_t)slots_world.dlsym;
}

const struct cus_others *cus_real_others(void) {
    return &slots_others;
}

void *cus_resolve(void *function, const char *name, int version) {
    (void)function, (void)name;
    slots_world.version = version;
    return slots_resolved;
}

const char *cus_routes_see(const char *path) {
    return slots_world.route && strcmp(path, slots_world.route) == 0 ? slots_world.route : NULL;
}

void cus_preset_see(const char *path) {
    slots_world.seen = path;
}

void cus_preset_choose(void) {
    slots_world.chosen++;
}

void cus_handshake_found(enum cus_found what, const char *text) {
    if (what == CUS_FOUND_LED && slots_world.n_found < SLOTS_FOUND)
        strncpy(slots_world.found[slots_world.n_found++], text, sizeof slots_world.found[0] - 1);
}
