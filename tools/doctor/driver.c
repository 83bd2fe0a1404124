/*
 * Probes of the driver: the kernel's part, libcuda.so.1, GPUs, CUPTI. The facts are gathered once,
 * in a child that opens libcuda as a program would and makes no context. It never calls the driver
 * in the launcher's own process.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/api/api.h"
#include "tools/doctor/probe.h"

enum { TEXT = 256 };

#define DRIVER_CALLS(X)                                                                            \
    X(cuDriverGetVersion)                                                                          \
    X(cuInit)                                                                                      \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceTotalMem_v2)                                                                         \
    X(cuDeviceGetAttribute)

struct calls {
#define X(name) __typeof__(&name) name;
    DRIVER_CALLS(X)
#undef X
};

/* ---- gathering, in the child ---- */

/* The call is noted before it is made: it may not return. */
#define TRY(facts, calls, name, ...)                                                               \
    (snprintf((facts)->stage, sizeof(facts)->stage, "%s", #name),                                  \
     ((facts)->result = (int)(calls)->name(__VA_ARGS__)) == 0)

static bool open_driver(struct doctor_driver *facts, struct calls *calls) {
    struct link_map *map;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        snprintf(facts->error, sizeof facts->error, "%s", dlerror());
        return false;
    }
    if (dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && !realpath(map->l_name, facts->path))
        snprintf(facts->path, sizeof facts->path, "%s", map->l_name);
    facts->simulator = dlsym(driver, "cuSimSetSeed") != NULL;
#define X(name)                                                                                    \
    if (!(calls->name = (__typeof__(&name))dlsym(driver, #name))) {                                \
        snprintf(facts->error, sizeof facts->error, "it has no %s", #name);                        \
        return false;                                                                              \
    }
    DRIVER_CALLS(X)
#undef X
    return true;
}

static bool ask_gpu(struct doctor_driver *facts, const struct calls *calls, int place) {
    CUdevice device;
    size_t bytes = 0;
    int of = place < DOCTOR_GPUS ? place : DOCTOR_GPUS - 1;
    bool good = TRY(facts, calls, cuDeviceGet, &device, place) &&
                TRY(facts, calls, cuDeviceGetName, facts->gpu[of].name,
                    (int)sizeof facts->gpu[of].name, device) &&
                TRY(facts, calls, cuDeviceTotalMem_v2, &bytes, device) &&
                TRY(facts, calls, cuDeviceGetAttribute, &facts->gpu[of].major,
                    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) &&
                TRY(facts, calls, cuDeviceGetAttribute, &facts->gpu[of].minor,
                    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) &&
                TRY(facts, calls, cuDeviceGetAttribute, &facts->gpu[of].mode,
                    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device);
    facts->gpu[of].bytes = bytes;
    return good;
}

static void gather(void *context) {
    struct doctor_driver *facts = context;
    struct calls calls;
    snprintf(facts->stage, sizeof facts->stage, "dlopen");
    if (!open_driver(facts, &calls) || !TRY(facts, &calls, cuDriverGetVersion, &facts->version) ||
        !TRY(facts, &calls, cuInit, 0) || !TRY(facts, &calls, cuDeviceGetCount, &facts->gpus))
        return;
    for (int i = 0; i < facts->gpus && i < DOCTOR_GPUS; i++)
        if (!ask_gpu(facts, &calls, i))
            return;
    facts->ready = true;
}

void doctor_gather_driver(void) {
    struct doctor_driver *facts = &doctor_facts->driver;
    facts->end = doctor_apart(gather, facts, doctor_facts->asked->seconds, &facts->signal);
}

/* ---- the kernel's part ---- */

/* The first word that begins with a digit and has a point: "580.95.05". */
static void version_in(const char *text, char *out, size_t bytes) {
    *out = 0;
    for (const char *word = text; *word; word += strspn(word, " \t")) {
        size_t length = strcspn(word, " \t\n");
        if (*word >= '0' && *word <= '9' && memchr(word, '.', length)) {
            snprintf(out, bytes, "%.*s", (int)length, word);
            return;
        }
        word += length;
        if (*word == '\n')
            return;
    }
}

static void ask_node(struct doctor_answer *answer, const char *path, bool always) {
    char whole[PATH_MAX];
    if (access(doctor_path(whole, path), R_OK | W_OK) == 0)
        doctor_find(answer, DOCTOR_OK, NULL, "%s", path);
    else if (errno != ENOENT)
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "let this user open the driver's devices (group video, or the container's "
                    "device rules)",
                    "%s: %s", path, strerror(errno));
    else if (always)
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s is not there", path);
}

/* The files of a driver end in its version. */
static void compare_versions(struct doctor_answer *answer, const char *kernel) {
    const char *path = doctor_facts->driver.path, *at = strstr(path, "libcuda.so.");
    if (!at || !strchr(at + 11, '.') || strcmp(at + 11, kernel) == 0)
        return;
    if (strstr(path, "/compat"))
        doctor_find(answer, DOCTOR_OK, NULL, "libcuda is that of the compatibility package, %s",
                    at + 11);
    else
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "restart the machine, or reload the driver, after an update; in a container, "
                    "let the runtime bring libcuda, and have none in the image",
                    "libcuda is of version %s", at + 11);
}

void doctor_ask_driver(struct doctor_answer *answer) {
    char text[1024], version[64], whole[PATH_MAX];
    if (doctor_facts->driver.simulator) {
        doctor_find(answer, DOCTOR_OK, NULL, "none is needed: libcuda.so.1 is the simulator");
        return;
    }
    if (access(doctor_path(whole, "/dev/dxg"), F_OK) == 0) {
        doctor_find(answer, DOCTOR_OK, NULL, "/dev/dxg (WSL): the driver is that of Windows");
        return;
    }
    if (!doctor_read("/proc/driver/nvidia/version", text, sizeof text)) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL,
                    "the module nvidia is not loaded (no /proc/driver/nvidia/version)");
        return;
    }
    version_in(text, version, sizeof version);
    doctor_find(answer, DOCTOR_OK, NULL, "%s%s", *version ? version : "no version is told",
                strstr(text, "Open Kernel") ? " (open)" : "");
    compare_versions(answer, version);
    ask_node(answer, "/dev/nvidiactl", true);
    ask_node(answer, "/dev/nvidia-uvm", true);
    for (int i = 0; i < DOCTOR_GPUS; i++) {
        char node[32];
        snprintf(node, sizeof node, "/dev/nvidia%d", i);
        ask_node(answer, node, false);
    }
}

/* ---- libcuda ---- */

/* What to do where a call of the driver fails so. */
static const char *advice_for(int result) {
    static const struct {
        int result;
        const char *advice;
    } rows[] = {
        {CUDA_ERROR_STUB_LIBRARY,
         "the toolkit's stub is found before the driver: take lib64/stubs out of LD_LIBRARY_PATH"},
        {CUDA_ERROR_NO_DEVICE,
         "make a GPU visible: CUDA_VISIBLE_DEVICES, docker run --gpus all, nvidia-smi -L"},
        {CUDA_ERROR_SYSTEM_NOT_READY,
         "start the services of the machine: systemctl start nvidia-fabricmanager"},
        {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
         "restart the machine, or reload the driver, after an update of the driver"},
        {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
         "the compatibility package does not fit this GPU: take its folder out of "
         "LD_LIBRARY_PATH, or update the driver"},
        {CUDA_ERROR_UNKNOWN,
         "try nvidia-smi as root once, which loads nvidia-uvm; in a container, pass "
         "/dev/nvidia-uvm"},
        {CUDA_ERROR_INVALID_DEVICE, "CUDA_VISIBLE_DEVICES names a GPU that is not there"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == result)
            return rows[i].advice;
    return "nvidia-smi and dmesg may say why";
}

void doctor_ask_libcuda(struct doctor_answer *answer) {
    const struct doctor_driver *facts = &doctor_facts->driver;
    char text[TEXT];
    if (*facts->path)
        doctor_find(answer, DOCTOR_OK, NULL, "%s%s", facts->path,
                    facts->simulator ? " (the simulator, no GPU)" : "");
    if (facts->version > CUS_TABLE_VERSION)
        doctor_find(answer, DOCTOR_NOTE,
                    "look for a newer cusplice: calls that this one does not know end runs of "
                    "launches",
                    "CUDA %d.%d, newer than this cusplice", facts->version / 1000,
                    facts->version % 1000 / 10);
    else if (facts->version)
        doctor_find(answer, facts->version < CUS_GRAPHS_VERSION ? DOCTOR_NOT_RIGHT : DOCTOR_OK,
                    "update the driver: graphs need one of CUDA 12.4, and all launches pass "
                    "unchanged until then",
                    "CUDA %d.%d", facts->version / 1000, facts->version % 1000 / 10);
    if (*facts->error) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s", facts->error);
    } else if (facts->end != DOCTOR_DONE) {
        doctor_end_text(facts->end, facts->signal, doctor_facts->asked->seconds, text, sizeof text);
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "the driver hangs or is damaged: dmesg may say why (Xid); restart the machine",
                    "%s: %s", facts->stage, text);
    } else if (facts->result) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, advice_for(facts->result), "%s returned error %d",
                    facts->stage, facts->result);
    }
}

void doctor_ask_gpu(struct doctor_answer *answer) {
    static const char *const modes[] = {"", ", one thread at a time", ", compute mode prohibited",
                                        ", one process at a time"};
    const struct doctor_driver *facts = &doctor_facts->driver;
    if (!facts->ready) {
        doctor_find(answer, DOCTOR_UNKNOWN, "first see to libcuda", "the driver did not say");
        return;
    }
    if (!facts->gpus)
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "none");
    for (int i = 0; i < facts->gpus && i < DOCTOR_GPUS; i++) {
        int mode = facts->gpu[i].mode & 3;
        doctor_find(answer, mode == CU_COMPUTEMODE_PROHIBITED ? DOCTOR_NOT_RIGHT : DOCTOR_OK,
                    "nvidia-smi -c DEFAULT lets programs use the GPU",
                    "%d: %s, compute capability %d.%d, %llu MiB%s", i, facts->gpu[i].name,
                    facts->gpu[i].major, facts->gpu[i].minor,
                    (unsigned long long)(facts->gpu[i].bytes >> 20), modes[mode]);
    }
    if (facts->gpus > DOCTOR_GPUS)
        doctor_find(answer, DOCTOR_OK, NULL, "and %d more", facts->gpus - DOCTOR_GPUS);
}

/* ---- CUPTI ---- */

/* By the names that the library tries (shim/hook/gpu_times.c). */
void doctor_ask_cupti(struct doctor_answer *answer) {
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    struct link_map *map;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char real[PATH_MAX];
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (!library)
            continue;
        bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, real);
        doctor_find(answer, DOCTOR_OK, NULL, "%s", known ? real : names[i]);
        return;
    }
    doctor_find(answer, DOCTOR_NOTE, NULL, "libcupti.so was not found");
}
