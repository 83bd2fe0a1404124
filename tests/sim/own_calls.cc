// Linked into libcusplice_faults.so, a library of the tests alone: the objects of the shipped
// library, with this file in front of two functions (--wrap). It tells the simulator which driver
// calls are the library's own, and makes allocations of the library fail.
//
// Any thread; must not allocate, and needs only libc, like the library itself.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern "C" {
#include "shim/api/driver.h"

void *cus_dlsym_find(void); // shim/hook/real.h
bool __real_cus_engine_start(const struct cus_driver *driver);
bool __wrap_cus_engine_start(const struct cus_driver *driver);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
}

namespace {

// ---- driver calls ----

struct cus_driver real;
unsigned (*tell)(unsigned who); // cuSimCaller

enum Caller { kProgram, kOwn };

thread_local int capturing; // between a begin of a capture of the library's and its end

// What is deferred goes out by the same functions as what is captured into a graph. The first are
// the program's calls, made later; the second are the library's.
constexpr bool IsOp(const char *name) {
    constexpr const char *kOps[] = {"cuLaunch", "cuMemset", "cuMemcpy", "cuMemFreeAsync",
                                    "cuEventRecord"};
    for (const char *op : kOps) {
        const char *at = name;
        while (*op && *at == *op) {
            at++;
            op++;
        }
        if (!*op) {
            return true;
        }
    }
    return false;
}

template <class F> struct Marked;

template <class... A> struct Marked<CUresult (*)(A...)> {
    template <CUresult (*cus_driver::*member)(A...), bool is_op> static CUresult Call(A... args) {
        if (is_op && !capturing) {
            return (real.*member)(args...);
        }
        unsigned before = tell(kOwn);
        CUresult result = (real.*member)(args...);
        tell(before);
        return result;
    }
};

template <CUresult (*cus_driver::*member)(CUstream, CUstreamCaptureMode)>
CUresult Begin(CUstream stream, CUstreamCaptureMode mode) {
    CUresult result =
        Marked<CUresult (*)(CUstream, CUstreamCaptureMode)>::Call<member, false>(stream, mode);
    capturing += result == CUDA_SUCCESS;
    return result;
}

template <CUresult (*cus_driver::*member)(CUstream, CUgraph *)>
CUresult End(CUstream stream, CUgraph *graph) {
    capturing = 0;
    return Marked<CUresult (*)(CUstream, CUgraph *)>::Call<member, false>(stream, graph);
}

// A wait for an event of the library's is its own; another one was deferred, and is the program's.
CUevent own_events[64];
unsigned n_own_events;

CUresult Create(CUevent *event, unsigned flags) {
    CUresult result =
        Marked<CUresult (*)(CUevent *, unsigned)>::Call<&cus_driver::cuEventCreate, false>(event,
                                                                                           flags);
    unsigned n = __atomic_fetch_add(&n_own_events, 1, __ATOMIC_RELAXED);
    if (result == CUDA_SUCCESS && n < sizeof own_events / sizeof own_events[0]) {
        __atomic_store_n(&own_events[n], *event, __ATOMIC_RELAXED);
    }
    return result;
}

CUresult Wait(CUstream stream, CUevent event, unsigned flags) {
    for (CUevent &own : own_events) {
        if (__atomic_load_n(&own, __ATOMIC_RELAXED) == event) {
            return Marked<CUresult (*)(CUstream, CUevent, unsigned)>::Call<
                &cus_driver::cuStreamWaitEvent, false>(stream, event, flags);
        }
    }
    return real.cuStreamWaitEvent(stream, event, flags);
}

struct cus_driver marked;

// ---- allocations ----

// CUS_TEST_ALLOC_FAULT: "n" or "n+", as the simulator's faults; CUS_TEST_ALLOC_COUNT: a file that
// the number of allocations goes to.
uint64_t fault_at, allocations;
bool fault_onward;

__attribute__((constructor)) void ReadFault() {
    const char *text = getenv("CUS_TEST_ALLOC_FAULT");
    if (!text) {
        return;
    }
    char *end = nullptr;
    fault_at = strtoull(text, &end, 10);
    fault_onward = *end == '+';
    if (fault_at == 0 || end[fault_onward] != 0) {
        static const char kText[] = "CUS_TEST_ALLOC_FAULT: not understood\n";
        (void)!write(2, kText, sizeof kText - 1);
        _exit(2);
    }
}

__attribute__((destructor)) void WriteCount() {
    const char *path = getenv("CUS_TEST_ALLOC_COUNT");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0) {
        char text[32];
        int length = snprintf(text, sizeof text, "%llu\n",
                              (unsigned long long)__atomic_load_n(&allocations, __ATOMIC_RELAXED));
        (void)!write(file, text, (size_t)length);
        close(file);
    }
}

} // namespace

bool __wrap_cus_engine_start(const struct cus_driver *driver) {
    // By the real dlsym: ours would watch what it finds.
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    auto look = reinterpret_cast<void *(*)(void *, const char *)>(cus_dlsym_find());
    tell = reinterpret_cast<unsigned (*)(unsigned)>(look(libcuda, "cuSimCaller"));
    if (!tell) {
        return __real_cus_engine_start(driver); // a driver without it: nothing is marked
    }
    real = *driver;
#define MARK(name, ...)                                                                            \
    marked.name =                                                                                  \
        real.name ? &Marked<decltype(real.name)>::Call<&cus_driver::name, IsOp(#name)> : nullptr;
#define CUS_OWN_NEEDED MARK
#define CUS_OWN_OPTIONAL MARK
#define CUS_OWN_VERIFY MARK
#include "shim/api/own.def"
#undef MARK
    marked.cuStreamBeginCapture_v2 = &Begin<&cus_driver::cuStreamBeginCapture_v2>;
    marked.cuStreamEndCapture = &End<&cus_driver::cuStreamEndCapture>;
    marked.cuEventCreate = real.cuEventCreate ? &Create : nullptr;
    marked.cuStreamWaitEvent = real.cuStreamWaitEvent ? &Wait : nullptr;
    return __real_cus_engine_start(&marked);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    uint64_t n = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    if (fault_at && (n == fault_at || (fault_onward && n > fault_at))) {
        return nullptr;
    }
    return __real_calloc(count, bytes);
}
