/*
 * cusplice calibrate: measures what calls cost on this machine, for `cusplice whatif --cost`.
 * main.c calls it. It starts the program of tools/calibrate several times: without the library,
 * with it, and recorded. It never calls the driver itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/version.h"
#include "tools/calibrate/calibrate.h"
#include "tools/cli/library.h"
#include "tools/cli/run.h"
#include "tools/cli/temporary.h"
#include "tools/cli/whatif.h"
#include "tools/trace/beside.h"
#include "tools/trace/clean.h"
#include "tools/trace/model.h"
#include "tools/trace/settings.h"

static const char help[] = "Measures what calls and gaps cost on this machine and its first GPU, "
                           "and writes them as a file for cusplice whatif\n"
                           "--cost: what a launch costs the host, by itself and deferred, graph "
                           "launches, patches, builds, waits; the gaps\n"
                           "between kernels on the GPU, eager, in a graph and from graph to graph; "
                           "what recording adds. Nothing else should run\n"
                           "meanwhile; it takes some seconds. Where CUPTI is not found, kernels "
                           "are taken to run as long as they take in a graph.\n"
                           "\n" CLI_OPTIONS;

/* The same processor is faster and slower by the second: all is measured so many times, in turn,
 * and of each value the median is taken. */
enum { ROUNDS = 3 };
enum { LINES = 16384, PART_SECONDS = 60, EXIT_BAD = 2 };

static struct {
    const char *output;
    bool force;
} asked;

static struct {
    struct whatif_cost cost, noise; /* noise below 0: not measured */
    double memset;                  /* a memset in a graph, gap and all */
    double loop, loop_apart;        /* a launch of the loop that was run last */
    char gpu[128], cuda[32];
    bool gpu_times;
    char folder[PATH_MAX];
} found;

/* ---- a part of the program ---- */

/* How the program is run. */
struct setting {
    const char *preload; /* NULL: without the library */
    const char *mode;
    const char *record; /* the trace to leave; NULL: none */
    bool gpu;
};

/* In the child. */
static _Noreturn void become(int part, const struct setting *setting, int out) {
    char number[8];
    char *argv[] = {"cusplice", "calibrate", "--part", number, NULL};
    snprintf(number, sizeof number, "%d", part);
    settings_forget();
    unsetenv("CUDA_LAUNCH_BLOCKING");
    if (setting->preload) {
        setenv("LD_PRELOAD", setting->preload, 1);
        cli_run_set("mode", setting->mode);
        cli_run_set("log", "error");
        cli_run_set("demote", "no"); /* a noisy moment is no reason */
        cli_run_set("hold_us", "100000");
    }
    if (setting->record) {
        cli_run_set("record", setting->record);
        cli_run_set("record_gpu", setting->gpu ? "yes" : "no");
        cli_run_set("warmup", "8");
    }
    dup2(out, STDOUT_FILENO);
    execv("/proc/self/exe", argv);
    fprintf(stderr, "cusplice: calibrate: /proc/self/exe: %s\n", strerror(errno));
    _exit(1);
}

/* All that it says, up to its end or the time that it is given. */
static size_t listen(int from, char *text, size_t bytes, bool *late) {
    struct pollfd wait = {.fd = from, .events = POLLIN};
    time_t until = time(NULL) + PART_SECONDS;
    size_t got = 0;
    *late = false;
    while (got + 1 < bytes) {
        int ready = poll(&wait, 1, 1000);
        ssize_t n = ready > 0 ? read(from, text + got, bytes - got - 1) : -1;
        if (ready > 0 && n <= 0 && errno != EINTR)
            break;
        got += n > 0 ? (size_t)n : 0;
        if (time(NULL) > until) {
            *late = true;
            break;
        }
    }
    text[got] = 0;
    return got;
}

static bool run_part(int part, const struct setting *setting, char *text) {
    int ends[2], status = 0;
    bool late = false;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        cli_say("calibrate: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become(part, setting, ends[1]);
    close(ends[1]);
    if (child > 0) {
        errno = 0;
        listen(ends[0], text, LINES, &late);
        if (late)
            kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    if (child < 0)
        cli_say("calibrate: %s", strerror(errno));
    else if (late)
        cli_say("calibrate: nothing was measured within %d s: the GPU is busy or does not answer",
                PART_SECONDS);
    else if (WIFSIGNALED(status))
        cli_say("calibrate: the program that measures was ended by signal %d", WTERMSIG(status));
    return child > 0 && !late && status == 0;
}

/* ---- what it said ---- */

/* The place of "section.name" in a whatif_cost; NULL: it is no key. */
static double *place_of(struct whatif_cost *cost, const char *name) {
#define X(section, key, older, text)                                                               \
    if (strcmp(name, #section "." #key) == 0)                                                      \
        return &cost->section.key;
    WHATIF_COSTS(X)
#undef X
    return NULL;
}

static void put(const char *name, double value, double apart) {
    double *place = place_of(&found.cost, name), *noise = place_of(&found.noise, name);
    if (place) {
        *place = value;
        *noise = apart;
    } else if (strcmp(name, "raw.memset") == 0) {
        found.memset = value;
    } else if (strcmp(name, "raw.loop_launch") == 0) {
        found.loop = value;
        found.loop_apart = apart;
    }
}

static void take_lines(char *text) {
    char *rest = text, *line, name[64];
    double value, apart;
    while ((line = strsep(&rest, "\n")))
        if (strncmp(line, "text gpu ", 9) == 0)
            snprintf(found.gpu, sizeof found.gpu, "%s", line + 9);
        else if (strncmp(line, "text cuda ", 10) == 0)
            snprintf(found.cuda, sizeof found.cuda, "%s", line + 10);
        else if (sscanf(line, "%63s %lf %lf", name, &value, &apart) == 3)
            put(name, value, apart);
}

/* ---- what the recordings say ---- */

struct values {
    double *of;
    size_t n;
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(struct values *values, double *apart) {
    *apart = -1;
    if (!values->n)
        return -1;
    qsort(values->of, values->n, sizeof *values->of, by_value);
    *apart = values->of[3 * (values->n - 1) / 4] - values->of[(values->n - 1) / 4];
    return values->of[values->n / 2];
}

/* From the end of a deferred launch to the next one: the loop does nothing there. */
static double time_between(const struct cst_trace *trace, double *apart) {
    struct values values = {malloc((trace->n_events + 1) * sizeof(double)), 0};
    const struct cst_op *last = NULL;
    for (size_t i = 0; values.of && i < trace->n_events; i++) {
        const struct cst_op *op = (const struct cst_op *)trace->events[i];
        bool deferred = op->head.type == CST_OP && op->head.flags == CST_DEFERRED;
        if (deferred && last && op->head.ns >= last->head.ns + last->host_ns)
            values.of[values.n++] = (double)(op->head.ns - last->head.ns - last->host_ns);
        last = deferred ? op : NULL;
    }
    double between = median(&values, apart);
    free(values.of);
    return between;
}

/* How long kernels and memsets in graphs are said to run. */
static bool gpu_times(const struct cst_trace *trace, double *kernel, double *memset,
                      double *apart) {
    struct model *model = model_make(trace);
    struct values by_op[2] = {{malloc((trace->ops + 1) * sizeof(double)), 0},
                              {malloc((trace->ops + 1) * sizeof(double)), 0}};
    bool room = model && by_op[0].of && by_op[1].of;
    for (uint32_t i = 0; room && i < model->n_ops; i++) {
        const struct model_op *op = &model->ops[i];
        struct values *values = &by_op[trace->kinds[op->op->kind]->op == CST_OP_MEMSET];
        if (op->gpu && model_in_graph(op))
            values->of[values->n++] = (double)op->gpu->gpu_ns;
    }
    if (room) {
        *memset = median(&by_op[1], apart);
        *kernel = median(&by_op[0], apart);
    }
    free(by_op[0].of);
    free(by_op[1].of);
    model_free(model);
    return room;
}

static void take_gpu_times(const struct cst_trace *trace) {
    double kernel = -1, memset = -1, apart = -1, whole = found.cost.gpu.graph_kernel;
    found.cost.gpu.small_kernel = whole;
    found.cost.gpu.measured_more = found.cost.gpu.memset_more = 0;
    found.noise.gpu.small_kernel = found.noise.gpu.measured_more = found.noise.gpu.memset_more = -1;
    if (found.cost.gpu.eager_kernel < whole)
        found.cost.gpu.eager_kernel = whole;
    if (!trace->n_gpu || !gpu_times(trace, &kernel, &memset, &apart) || kernel < 0)
        return;
    found.gpu_times = true;
    found.noise.gpu.small_kernel = found.noise.gpu.measured_more = found.noise.gpu.memset_more =
        apart;
    if (kernel > whole)
        found.cost.gpu.measured_more = kernel - whole;
    else
        found.cost.gpu.small_kernel = kernel;
    double runs = memset - found.cost.gpu.measured_more;
    double more = found.memset - (whole - found.cost.gpu.small_kernel) - (runs > 0 ? runs : 0);
    found.cost.gpu.memset_more = memset >= 0 && more > 0 ? more : 0;
}

static bool take_recording(const char *path, bool gpu) {
    char error[1024];
    struct whatif_recording recording = {.eager = -1, .matched = -1};
    struct cst_trace *trace = cst_open(path, error, sizeof error);
    if (!trace) {
        cli_say("calibrate: %s", error);
        return false;
    }
    bool read = cli_whatif_host(trace, false, &recording);
    if (read && (recording.eager < 0 || recording.matched < 0)) {
        cli_say("calibrate: the library deferred nothing of the loop that it was measured with");
        read = false;
    }
    if (read && gpu) {
        put("recorder.eager_launch_gpu", recording.eager, recording.eager_apart);
        put("recorder.matched_launch_gpu", recording.matched, recording.matched_apart);
        take_gpu_times(trace);
    } else if (read) {
        double apart, between = time_between(trace, &apart);
        put("recorder.op", between, apart);
        put("recorder.eager_launch", recording.eager, recording.eager_apart);
        put("recorder.matched_launch", recording.matched, recording.matched_apart);
    }
    cst_free(trace);
    return read;
}

/* ---- the whole ---- */

static bool record(const char *preload, bool gpu, char *text) {
    char path[PATH_MAX + 32], partial[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s.cst", found.folder, gpu ? "gpu" : "host");
    const struct setting setting = {preload, "piecewise", path, gpu};
    bool done = run_part(CALIBRATE_RECORDED, &setting, text) && take_recording(path, gpu);
    snprintf(partial, sizeof partial, "%s.partial", path);
    unlink(path);
    unlink(partial);
    return done;
}

/* The loop as it is run so; what a launch of it takes, and more than `than` of that. */
static bool loop(const char *preload, const char *mode, const char *name, double than, char *text) {
    const struct setting setting = {preload, mode, NULL, false};
    found.loop = -1;
    if (!run_part(CALIBRATE_LOOP, &setting, text))
        return false;
    take_lines(text);
    put(name, found.loop > than ? found.loop - than : 0, found.loop_apart);
    return true;
}

static bool measure_once(const char *preload, char *text) {
    const struct setting alone = {NULL};
    if (!run_part(CALIBRATE_DRIVER, &alone, text))
        return false;
    take_lines(text);
    return loop(NULL, "", "host.eager_launch", 0, text) &&
           loop(preload, "eager", "host.let_through", found.cost.host.eager_launch, text) &&
           loop(preload, "piecewise", "host.matched_launch", 0, text) &&
           record(preload, false, text) && record(preload, true, text);
}

/* Of each key the median, and how far it was apart from round to round, if that is more. */
static void take_medians(struct whatif_cost *costs, struct whatif_cost *noises) {
    static const char *const names[] = {
#define X(section, key, older, text) #section "." #key,
        WHATIF_COSTS(X)
#undef X
    };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        double of[ROUNDS], noise = -1;
        struct values values = {of, ROUNDS};
        for (unsigned r = 0; r < ROUNDS; r++) {
            of[r] = *place_of(&costs[r], names[i]);
            double apart = *place_of(&noises[r], names[i]);
            noise = apart > noise ? apart : noise;
        }
        double apart, value = median(&values, &apart);
        put(names[i], value, noise >= 0 && apart > noise ? apart : noise);
    }
}

static bool measure(void) {
    static char text[LINES];
    struct whatif_cost costs[ROUNDS], noises[ROUNDS];
    char library[PATH_MAX];
    if (!cli_library_find(library, sizeof library))
        return false;
    char *preload = cli_library_preload(library, getenv("LD_PRELOAD"));
    if (!preload ||
        !cli_temporary(found.folder, sizeof found.folder, "cusplice-calibrate.XXXXXX") ||
        !mkdtemp(found.folder)) {
        cli_say("calibrate: %s: %s", found.folder, strerror(errno));
        free(preload);
        return false;
    }
    bool done = true;
    for (unsigned r = 0; done && r < ROUNDS; r++) {
        done = measure_once(preload, text);
        costs[r] = found.cost;
        noises[r] = found.noise;
    }
    if (done)
        take_medians(costs, noises);
    rmdir(found.folder);
    free(preload);
    return done;
}

/* "model name : ..." of /proc/cpuinfo. */
static void processor(char *out, size_t bytes) {
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    *out = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        snprintf(out, bytes, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void kernel_driver(char *out, size_t bytes) {
    char line[512] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    if (file && fgets(line, sizeof line, file))
        snprintf(out, bytes, "%.*s", (int)strcspn(line, "\n"), line);
    else
        snprintf(out, bytes, "not told by /proc/driver/nvidia/version");
    if (file)
        fclose(file);
}

static bool write_all(FILE *file, const void *context) {
    struct utsname system;
    char cpu[128], driver[512], day[64];
    time_t now = time(NULL);
    struct tm when;
    (void)context;
    uname(&system);
    processor(cpu, sizeof cpu);
    kernel_driver(driver, sizeof driver);
    strftime(day, sizeof day, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &when));
    fprintf(
        file,
        "# What things cost, in nanoseconds: for `cusplice whatif --cost`. Measured by `cusplice "
        "calibrate` of cusplice %s.\n",
        CUSPLICE_VERSION);
    clean_print(file, "# Machine: %s, %s, Linux %s\n", system.nodename, cpu, system.release);
    clean_print(file, "# GPU: %s, CUDA %s\n", found.gpu, found.cuda);
    clean_print(file, "# Driver: %s\n", driver);
    fprintf(file, "# When: %s\n", day);
    if (!found.gpu_times)
        fputs("# CUPTI was not found: how long the small kernel runs is not known, and taken for "
              "all of graph_kernel.\n",
              file);
    fputc('\n', file);
    return whatif_cost_write(file, &found.cost, &found.noise);
}

static bool write_output(void) {
    if (!asked.output) {
        if (write_all(stdout, NULL) && fflush(stdout) == 0)
            return true;
        cli_say("the figures could not be written: %s", strerror(errno));
        return false;
    }
    int error = beside_write(asked.output, asked.force, NULL, write_all, NULL);
    if (error)
        cli_say("--output %s: %s", asked.output, beside_why(error));
    return !error;
}

/* Found out before anything is measured. */
static bool output_fits(void) {
    struct beside beside;
    if (!asked.output)
        return true;
    int fd = *asked.output ? beside_open(&beside, asked.output, asked.force, NULL) : -1;
    if (fd < 0) {
        cli_say("--output %s: %s", asked.output,
                *asked.output ? beside_why(errno) : "a file name is expected");
        return false;
    }
    close(fd);
    beside_remove(&beside);
    return true;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const struct cli_option options[] = {
        CLI_OUTPUT(cli_take_text, &asked.output, "; - is stdout, as without it"),
        CLI_FORCE(&asked.force),
        {0}};
    static const struct cli_option *const tables[] = {options, NULL};
    struct cli_words words;
    char error[512];
    if (argc == 3 && strcmp(argv[1], "--part") == 0)
        return calibrate_run((enum calibrate_part)atoi(argv[2]));
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    if (words.n) {
        cli_say("calibrate measures this machine and takes no '%s'; a file is named by -o",
                words.at[0]);
        return EXIT_BAD;
    }
    if (asked.output && strcmp(asked.output, "-") == 0)
        asked.output = NULL;
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error like others */
    if (!output_fits())
        return 1;
    whatif_cost_read(NULL, &found.cost, error, sizeof error);
    for (double *at = (double *)(void *)&found.noise.host; (char *)at < (char *)(&found.noise + 1);)
        *at++ = -1;
    return measure() && write_output() ? 0 : 1;
}

const struct cli_verb cli_verb_calibrate = {
    .name = "calibrate",
    .synopsis = "calibrate [-o FILE] [--force]",
    .summary = "measure what launches cost on this machine, for whatif",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where something could not be measured or written; 2 for a bad option",
            .examples = "cusplice calibrate -o this.cost\tMeasures this machine; then: cusplice "
                        "whatif --cost this.cost.\n",
            .files = "this.cost\tWhat was measured, where -o names it; the default is h200.cost of "
                     "the tree.\n",
            .see = "whatif",
            .takes = CLI_TAKES_NOTHING,
        },
};
