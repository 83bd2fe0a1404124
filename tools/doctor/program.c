/*
 * Probes of the program at hand: its file, whether a library can be preloaded into it, what of CUDA
 * it links, and what could be bound past the library. The table calls them, each in a child. The
 * program is read and never run; the system's dynamic loader lists what it needs.
 */
#include "tools/cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/doctor/elf.h"
#include "tools/doctor/probe.h"

/* SCAN_BYTES: larger files are not searched for a text. */
enum { OBJECTS = 256, LIST_SECONDS = 10, LIST_BYTES = 1 << 17, SCAN_BYTES = 1 << 28 };

/* ---- the file ---- */

static const char *asked(void) {
    return doctor_facts->asked->program;
}

/* The file that the kernel executes in the end: of a script its interpreter. False: none. */
static bool find_file(char path[PATH_MAX]) {
    return cli_program_find(asked(), path, PATH_MAX) && cli_program_interpreter(path, PATH_MAX);
}

/* As this very process has it. "": not known. */
static void own_loader(char out[PATH_MAX]) {
    struct doctor_elf self;
    *out = 0;
    if (!doctor_elf_open(&self, "/proc/self/exe"))
        return;
    const char *loader = doctor_elf_loader(&self);
    if (loader && !realpath(loader, out))
        *out = 0;
    doctor_elf_close(&self);
}

static void tell_loader(struct doctor_answer *answer, const struct doctor_elf *elf) {
    const char *loader = doctor_elf_loader(elf);
    if (!loader)
        doctor_find(answer, DOCTOR_OK, NULL, "without a dynamic loader");
    else if (strstr(loader, "ld-musl"))
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "build it for the GNU C library, or run it in an image that has one (Debian, "
                    "Ubuntu): the library does not load under musl",
                    "its loader is %s", loader);
    else
        doctor_find(answer, access(loader, X_OK) == 0 ? DOCTOR_OK : DOCTOR_NOT_RIGHT,
                    "install the loader that it names: without it the program does not start",
                    "its loader is %s%s", loader,
                    access(loader, X_OK) == 0 ? "" : ", which is not there");
}

void doctor_ask_program(struct doctor_answer *answer) {
    char path[PATH_MAX], file[PATH_MAX];
    struct doctor_elf elf;
    if (!cli_program_find(asked(), path, sizeof path)) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL,
                    "%s is no program: it is not in PATH, or cannot be executed", asked());
        return;
    }
    doctor_find(answer, DOCTOR_OK, NULL, "%s", path);
    if (!find_file(file)) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, "install that interpreter, or change the first line",
                    "it is a script whose interpreter is not there");
        return;
    }
    if (strcmp(file, path) != 0)
        doctor_find(answer, DOCTOR_OK, NULL, "a script for %s", file);
    if (!doctor_elf_open(&elf, file)) {
        doctor_find(answer, DOCTOR_NOTE, "name the program that uses CUDA itself",
                    "%s cannot be read, or is no 64-bit program", file);
        return;
    }
    tell_loader(answer, &elf);
    doctor_elf_close(&elf);
}

/* ---- preloading ---- */

void doctor_ask_loading(struct doctor_answer *answer) {
    static const struct {
        const char *word, *advice; /* word: of what cli_program_obstacle says */
    } rows[] = {
        {"statically linked", "link it dynamically (no -static; a static CUDA runtime is fine)"},
        {"setuid", "run it as its owner, or take the bit away: chmod ug-s"},
        {"file capabilities", "run it as root, or take them away: setcap -r FILE"},
        {"32-bit", "build it for 64 bits"},
        {"another kind of processor", "run it on the processor that it was built for"},
    };
    char why[PATH_MAX + 128], path[PATH_MAX];
    const char *advice = NULL;
    if (!find_file(path)) {
        doctor_find(answer, DOCTOR_UNKNOWN, "first see to the program", "there is no program");
        return;
    }
    cli_program_obstacle(asked(), why, sizeof why);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!advice && strstr(why, rows[i].word))
            advice = rows[i].advice;
    if (*why)
        doctor_find(answer, DOCTOR_NOT_RIGHT, advice, "no: %s", why);
    else
        doctor_find(answer, DOCTOR_OK, NULL, "yes, by LD_PRELOAD");
}

/* ---- what it links ---- */

struct object {
    char name[128];
    char path[PATH_MAX]; /* "": not known */
};

/* All objects that the loader would map, the program first. */
struct closure {
    bool listed;     /* the loader listed them; else they are those that the program names itself */
    char error[512]; /* what the loader said instead */
    unsigned n;
    struct object objects[OBJECTS];
};

static void add(struct closure *closure, const char *name, const char *path) {
    if (closure->n == OBJECTS)
        return;
    struct object *object = &closure->objects[closure->n++];
    snprintf(object->name, sizeof object->name, "%s", name);
    snprintf(object->path, sizeof object->path, "%s", path);
}

struct listing {
    int out;
    const char *loader, *program;
};

static void list(void *context) {
    const struct listing *listing = context;
    char *argv[] = {(char *)listing->loader, "--list", (char *)listing->program, NULL};
    unsetenv("LD_PRELOAD");
    unsetenv("LD_AUDIT");
    unsetenv("LD_DEBUG");
    dup2(listing->out, STDOUT_FILENO);
    dup2(listing->out, STDERR_FILENO);
    execv(listing->loader, argv);
    _exit(127);
}

/* "\tlibm.so.6 => /lib/libm.so.6 (0x7f..)"; or where one is missing, a line of an error alone. */
static void take_listed(struct closure *closure, char *text) {
    static const char error[] = "error while loading shared libraries: ";
    char *rest = text, *line, path[PATH_MAX];
    while ((line = strsep(&rest, "\n"))) {
        char *arrow = strstr(line, " => "), *said = strstr(line, error);
        line += strspn(line, "\t ");
        if (said && !*closure->error)
            snprintf(closure->error, sizeof closure->error, "%s", said + strlen(error));
        if (!arrow || arrow < line)
            continue;
        *arrow = 0;
        arrow += 4;
        char *end = strstr(arrow, " (0x");
        if (end)
            *end = 0;
        add(closure, line, end && realpath(arrow, path) ? path : "");
        closure->listed = true;
    }
}

/* By this process's own loader alone: another one finds other files, and would be a program of a
 * stranger's choice. */
static void list_all(struct closure *closure, const char *program, const struct doctor_elf *elf) {
    char own[PATH_MAX], real[PATH_MAX];
    const char *loader = doctor_elf_loader(elf);
    own_loader(own);
    if (!*own || !loader || !realpath(loader, real) || strcmp(own, real) != 0)
        return;
    struct listing listing = {memfd_create("list", MFD_CLOEXEC), own, program};
    int number;
    char *text = calloc(1, LIST_BYTES);
    if (listing.out >= 0 && text &&
        doctor_apart(list, &listing, LIST_SECONDS, &number) != DOCTOR_LATE &&
        pread(listing.out, text, LIST_BYTES - 1, 0) > 0)
        take_listed(closure, text);
    free(text);
    if (listing.out >= 0)
        close(listing.out);
}

/* NULL: there is no file that could be read, which was said. */
static struct closure *find_closure(struct doctor_answer *answer) {
    static struct closure closure;
    struct doctor_elf elf;
    char path[PATH_MAX];
    if (!find_file(path) || !doctor_elf_open(&elf, path)) {
        doctor_find(answer, DOCTOR_UNKNOWN, "first see to the program",
                    "there is no program that can be read");
        return NULL;
    }
    add(&closure, "the program", path);
    list_all(&closure, path, &elf);
    const char *name;
    for (unsigned i = 0; !closure.listed && (name = doctor_elf_needed(&elf, i)); i++)
        add(&closure, name, "");
    doctor_elf_close(&elf);
    return &closure;
}

static bool is_named(const struct object *object, const char *begin) {
    return strncmp(object->name, begin, strlen(begin)) == 0;
}

static bool is_runtime(const struct object *object) {
    return is_named(object, "libcudart.so");
}

/* The major version of the runtime, and of CUDA that the driver has. */
static void compare_runtime(struct doctor_answer *answer, const struct object *runtime) {
    int major = atoi(runtime->name + strlen("libcudart.so.")),
        driver = doctor_facts->driver.version;
    const char *slash = strrchr(runtime->path, '/');
    bool older = driver && major >= 11 && major > driver / 1000;
    doctor_find(answer, older ? DOCTOR_NOT_RIGHT : DOCTOR_OK,
                "update the driver, or use a build for its CUDA version", "shared runtime %s%s",
                slash ? slash + 1 : runtime->name, older ? ", which is newer than the driver" : "");
}

static unsigned tell_shared(struct doctor_answer *answer, const struct closure *closure) {
    unsigned runtimes = 0;
    for (unsigned i = 1; i < closure->n; i++) {
        const struct object *object = &closure->objects[i];
        if (is_named(object, "libcuda.so"))
            doctor_find(answer, DOCTOR_OK, NULL, "it is linked to libcuda.so.1");
        else if (is_runtime(object) && ++runtimes)
            compare_runtime(answer, object);
    }
    if (runtimes > 1)
        doctor_find(answer, DOCTOR_NOTE, "two runtimes are most often a build by mistake",
                    "%u runtimes", runtimes);
    return runtimes;
}

/* A name of the shared memory that each copy of the runtime makes, and nobody else. */
static bool holds_runtime(const struct doctor_elf *elf) {
    return elf->bytes < SCAN_BYTES && doctor_elf_holds(elf, "/cudart.shm.");
}

static void tell_static(struct doctor_answer *answer, const struct closure *closure,
                        unsigned *found) {
    for (unsigned i = 0; i < closure->n; i++) {
        const struct object *object = &closure->objects[i];
        struct doctor_elf elf;
        if (!*object->path || is_runtime(object) || !doctor_elf_open(&elf, object->path))
            continue;
        bool code = doctor_elf_has_section(&elf, ".nv_fatbin");
        bool runtime = holds_runtime(&elf);
        doctor_elf_close(&elf);
        if (!code && !runtime)
            continue;
        doctor_find(answer, DOCTOR_OK, NULL, "%s has %s%s%s", object->name, code ? "GPU code" : "",
                    code && runtime ? " and " : "", runtime ? "a static runtime" : "");
        ++*found;
    }
}

void doctor_ask_links(struct doctor_answer *answer) {
    struct closure *closure = find_closure(answer);
    if (!closure)
        return;
    if (*closure->error)
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "the loader says: %s", closure->error);
    unsigned found = tell_shared(answer, closure);
    tell_static(answer, closure, &found);
    if (!closure->listed && !*closure->error && closure->n > 1)
        doctor_find(answer, DOCTOR_OK, NULL,
                    "only its own list was read, since it has another loader than this command");
    if (!found && !strstr(answer->value, "libcuda.so.1"))
        doctor_find(answer, DOCTOR_OK, NULL,
                    "nothing of CUDA is linked: it may be loaded later, as Python does");
}

/* ---- what could be bound past the library ---- */

void doctor_ask_bindings(struct doctor_answer *answer) {
    struct closure *closure = find_closure(answer);
    if (!closure)
        return;
    bool opens = false;
    for (unsigned i = 0; i < closure->n; i++) {
        const struct object *object = &closure->objects[i];
        struct doctor_elf elf;
        if (!*object->path || is_named(object, "libc.so") || is_named(object, "libdl.so") ||
            is_named(object, "libcuda.so") || !doctor_elf_open(&elf, object->path))
            continue;
        /* The runtime imports it, and loads no code of the program by it. */
        if (doctor_elf_imports(&elf, "dlmopen") && !is_runtime(object) && !holds_runtime(&elf))
            doctor_find(answer, DOCTOR_NOTE, NULL, "%s calls dlmopen", object->name);
        if (doctor_elf_imports(&elf, "dlopen") && !opens) {
            opens = true;
            doctor_find(answer, DOCTOR_OK, NULL,
                        "%s calls dlopen; whether with RTLD_DEEPBIND no file tells: such objects "
                        "are led to the library, and cusplice run names them",
                        object->name);
        }
        doctor_elf_close(&elf);
    }
    if (!*answer->value)
        doctor_find(answer, DOCTOR_OK, NULL, "it opens no libraries by dlopen");
}
