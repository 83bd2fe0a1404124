/*
 * Probes of the machine: kernel, container, processors, /dev/shm, filters of system calls, ptrace.
 * The table calls them, each in a child. They change nothing but a file of their own in /dev/shm.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shim/base/processors.h"
#include "tools/doctor/probe.h"

void doctor_ask_system(struct doctor_answer *answer) {
    struct utsname name;
    char release[4096], pretty[128];
    uname(&name);
    bool known = strcmp(name.machine, "x86_64") == 0 || strcmp(name.machine, "aarch64") == 0;
    doctor_find(answer, known ? DOCTOR_OK : DOCTOR_NOT_RIGHT, NULL, "%s %s %s", name.sysname,
                name.release, name.machine);
    doctor_find(answer, DOCTOR_OK, NULL, "glibc %s", gnu_get_libc_version());
    doctor_read("/etc/os-release", release, sizeof release);
    doctor_value_of(release, "PRETTY_NAME", pretty, sizeof pretty);
    doctor_find(answer, DOCTOR_OK, NULL, "%s", *pretty ? pretty : "no /etc/os-release");
}

/* ---- containers ---- */

static bool exists(const char *path) {
    char whole[PATH_MAX];
    return access(doctor_path(whole, path), F_OK) == 0;
}

void doctor_ask_container(struct doctor_answer *answer) {
    static const struct {
        const char *word, *means;
    } groups[] = {{"kubepods", "Kubernetes"}, {"docker", "Docker"}, {"containerd", "containerd"},
                  {"libpod", "Podman"},       {"lxc", "LXC"},       {"slurm", "a Slurm job"}};
    char text[8192];
    bool any = false;
    if (exists("/.dockerenv") && (any = true))
        doctor_find(answer, DOCTOR_OK, NULL, "/.dockerenv is there");
    if (exists("/run/.containerenv") && (any = true))
        doctor_find(answer, DOCTOR_OK, NULL, "/run/.containerenv is there");
    doctor_read("/proc/self/cgroup", text, sizeof text);
    for (unsigned i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strstr(text, groups[i].word) && (any = true))
            doctor_find(answer, DOCTOR_OK, NULL, "the control group is that of %s",
                        groups[i].means);
    doctor_read("/proc/version", text, sizeof text);
    if (strstr(text, "gVisor") && (any = true))
        doctor_find(answer, DOCTOR_NOTE,
                    "gVisor passes on only the driver calls that its nvproxy knows: use a driver "
                    "version that runsc supports",
                    "the kernel is gVisor's");
    if (strstr(text, "icrosoft") && (any = true))
        doctor_find(answer, DOCTOR_OK, NULL, "the kernel is that of WSL");
    if (!any)
        doctor_find(answer, DOCTOR_OK, NULL, "no sign of one");
}

/* ---- processors ---- */

void doctor_ask_cpus(struct doctor_answer *answer) {
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    long allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : online;
    long quota = (long)cus_processors_quota(doctor_facts->asked->root);
    doctor_find(answer, allowed < 2 ? DOCTOR_NOTE : DOCTOR_OK, NULL,
                "%ld online, this process may run on %ld", online, allowed);
    if (quota)
        doctor_find(answer, quota < 2 ? DOCTOR_NOTE : DOCTOR_OK, NULL,
                    "the control group has a quota of %ld, rounded up", quota);
    else
        doctor_find(answer, DOCTOR_OK, NULL, "no quota");
}

/* ---- /dev/shm ---- */

enum { SHM_BYTES = 1 << 16, SHM_LITTLE_MIB = 64 };

/* NULL: a file of some size can be made there. */
static const char *try_file(const char *folder) {
    char path[PATH_MAX + 32];
    int wrong = 0;
    snprintf(path, sizeof path, "%s/cusplice-doctor-%ld", folder, (long)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return strerror(errno);
    wrong = posix_fallocate(fd, 0, SHM_BYTES);
    unlink(path);
    close(fd);
    return wrong ? strerror(wrong) : NULL;
}

void doctor_ask_shm(struct doctor_answer *answer) {
    char folder[PATH_MAX];
    struct statvfs size;
    const char *why = try_file(doctor_path(folder, "/dev/shm"));
    if (why) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "no file of %d KiB can be made in %s: %s",
                    SHM_BYTES >> 10, folder, why);
        return;
    }
    unsigned long long mib =
        statvfs(folder, &size) == 0 ? ((unsigned long long)size.f_bavail * size.f_frsize) >> 20 : 0;
    doctor_find(answer, mib < SHM_LITTLE_MIB ? DOCTOR_NOTE : DOCTOR_OK, NULL,
                "it can be written, %llu MiB are free", mib);
}

/* ---- seccomp ---- */

/* Each returns 0, or the errno. */
static int call_readv(void) {
    char from = 1, to = 0;
    struct iovec there = {&from, 1}, here = {&to, 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 ? 0 : errno;
}

static int call_affinity(void) {
    unsigned char mask[1024];
    return syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) > 0 ? 0 : errno;
}

static int call_scheduler(void) {
    struct sched_param none = {0};
    return sched_setscheduler(0, SCHED_OTHER, &none) == 0 ? 0 : errno;
}

static int call_mprotect(void) {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int wrong = page == MAP_FAILED || mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0 ? errno : 0;
    if (page != MAP_FAILED)
        munmap(page, 4096);
    return wrong;
}

struct trial {
    const char *call, *without; /* what is lost without it */
    int (*try_it)(void);
    int wrong;
};

static void try_call(void *context) {
    struct trial *trial = context;
    trial->wrong = trial->try_it();
}

void doctor_ask_seccomp(struct doctor_answer *answer) {
    static const struct trial trials[] = {
        {"process_vm_readv", "objects that are opened with RTLD_DEEPBIND end all graphs",
         call_readv, 0},
        {"mprotect", "objects that are bound past the library cannot be led to it", call_mprotect,
         0},
        {"sched_getaffinity", "threads of the library inherit the program's processors",
         call_affinity, 0},
        {"sched_setscheduler", "threads of the library inherit the program's priority",
         call_scheduler, 0},
    };
    static const char *const modes[] = {"no filter", "strict mode", "a filter is in force"};
    char status[8192], mode[16], privileges[16];
    struct trial *trial = doctor_shared(sizeof *trial);
    doctor_read("/proc/self/status", status, sizeof status);
    doctor_value_of(status, "Seccomp", mode, sizeof mode);
    doctor_value_of(status, "NoNewPrivs", privileges, sizeof privileges);
    int known = *mode >= '0' && *mode <= '2' && !mode[1];
    doctor_find(answer, DOCTOR_OK, NULL, "%s", known ? modes[*mode - '0'] : "the mode is not told");
    if (strcmp(privileges, "1") == 0)
        doctor_find(answer, DOCTOR_OK, NULL, "no new privileges");
    for (unsigned i = 0; trial && i < sizeof trials / sizeof *trials; i++) {
        int number;
        *trial = trials[i];
        trial->wrong = -1;
        enum doctor_end end = doctor_apart(try_call, trial, 1, &number);
        if (end == DOCTOR_DIED)
            doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s ends the process: %s", trial->call,
                        number ? strsignal(number) : "it exits");
        else if (trial->wrong > 0)
            doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s is refused (%s): %s", trial->call,
                        strerror(trial->wrong), trial->without);
    }
}

/* ---- ptrace ---- */

void doctor_ask_ptrace(struct doctor_answer *answer) {
    static const char *const scopes[] = {"a user may look into all of the own processes",
                                         "a debugger may look into what it started",
                                         "only root may", "nobody may"};
    char status[8192], tracer[16], scope[16];
    if (!doctor_read("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope))
        doctor_find(answer, DOCTOR_OK, NULL, "no yama");
    else if (*scope < '0' || *scope > '3')
        doctor_find(answer, DOCTOR_UNKNOWN, NULL, "yama's ptrace_scope is not a known number");
    else
        doctor_find(answer, *scope > '1' ? DOCTOR_NOTE : DOCTOR_OK, NULL,
                    "yama's ptrace_scope is %c: %s", *scope, scopes[*scope - '0']);
    doctor_read("/proc/self/status", status, sizeof status);
    doctor_value_of(status, "TracerPid", tracer, sizeof tracer);
    if (*tracer && strcmp(tracer, "0") != 0)
        doctor_find(answer, DOCTOR_NOTE, "times are those of a traced process: run it without",
                    "a debugger or strace follows this process");
}
