/*
 * Runs generated programs in one process, as a socket (descriptor 3) requests. Returns codes,
 * digests of memory, and the simulator's log. The controller starts one server plain and one
 * preloaded. A server ends when its socket closes.
 */
#include "tests/fuzz/machine.c"

#include <unistd.h>

#include "tests/fuzz/program.h"

enum { SOCKET = 3 };

_Static_assert((int)FUZZ_LANES == (int)LANES && (int)FUZZ_THREADS == (int)THREADS, "one size");

static const struct {
    void (*verb)(struct turn *);
    unsigned flags;
} verbs[] = {
#define VERB(name, mostly, mixed, flags) {op_##name, flags},
#include "tests/fuzz/verbs.def"
};

static void get(void *to, size_t bytes) {
    for (char *at = to; bytes > 0;) {
        ssize_t n = read(SOCKET, at, bytes);
        if (n <= 0)
            exit(n < 0 ? 4 : 0); /* with the exit handlers of simulator and library */
        at += n;
        bytes -= (size_t)n;
    }
}

static void put(const void *from, size_t bytes) {
    for (const char *at = from; bytes > 0;) {
        ssize_t n = write(SOCKET, at, bytes);
        if (n <= 0)
            exit(4);
        at += n;
        bytes -= (size_t)n;
    }
}

static CUresult (*log_take)(char **text, size_t *bytes);
static CUresult (*set_delay)(unsigned us);
static CUresult (*set_seed)(unsigned long long seed);
static CUresult (*set_fault)(const char *text);
static sched_begin_fn *turns_begin; /* NULL without libsched.so */
static sched_end_fn *turns_end;

static void find_simulator(void) {
    log_take = (CUresult(*)(char **, size_t *))dlsym(RTLD_DEFAULT, "cuSimLogTake");
    set_delay = (CUresult(*)(unsigned))dlsym(RTLD_DEFAULT, "cuSimSetDelay");
    set_seed = (CUresult(*)(unsigned long long))dlsym(RTLD_DEFAULT, "cuSimSetSeed");
    set_fault = (CUresult(*)(const char *))dlsym(RTLD_DEFAULT, "cuSimSetFault");
    turns_begin = (sched_begin_fn *)dlsym(RTLD_DEFAULT, "sched_begin");
    turns_end = (sched_end_fn *)dlsym(RTLD_DEFAULT, "sched_end");
    if (!log_take || !set_delay || !set_seed || !set_fault) {
        fprintf(stderr, "fuzz: this is not the simulator\n");
        _exit(5);
    }
}

struct line {
    unsigned stream;
    const char *text;
    size_t bytes;
};

static int by_stream(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->text < y->text ? -1 : x->text > y->text;
}

/* The log with the lines of each stream together; the caller frees it. */
static char *sorted_log(size_t *bytes) {
    char *text = NULL, *sorted;
    size_t n = 0, at = 0, lines = 0;
    struct line *line;
    MUST(log_take(&text, &n));
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    line = malloc((lines + 1) * sizeof(*line));
    sorted = malloc(n + 1);
    lines = 0;
    for (char *from = text, *end; (end = memchr(from, '\n', (size_t)(text + n - from)));
         from = end + 1)
        line[lines++] =
            (struct line){(unsigned)strtoul(from + 1, NULL, 10), from, (size_t)(end + 1 - from)};
    qsort(line, lines, sizeof(*line), by_stream);
    for (size_t i = 0; i < lines; i++) {
        memcpy(sorted + at, line[i].text, line[i].bytes);
        at += line[i].bytes;
    }
    free(line);
    free(text);
    *bytes = at;
    return sorted;
}

static void serve(struct machine *m, const struct fuzz_request *request) {
    const struct fuzz_program *p = &request->program;
    struct op ops[FUZZ_OPS_MAX];
    struct fuzz_reply reply = {.number = request->number, .lanes = p->lanes};
    size_t bytes;
    char *log;
    m->lanes = p->lanes, m->threads = p->threads, m->steps = p->steps;
    m->ops = ops, m->n_ops = p->n_ops;
    m->capturing = NULL;
    memset(m->lane, 0, sizeof(m->lane));
    memset(m->n_codes, 0, sizeof(m->n_codes));
    for (unsigned i = 0; i < p->lanes; i++)
        m->lane[i].kind = (enum lane_kind)p->kind[i], m->lane[i].thread = p->thread[i];
    for (unsigned i = 0; i < p->n_ops; i++) {
        const struct fuzz_op *o = &p->op[i];
        ops[i] = (struct op){
            verbs[o->verb].verb, o->lane, o->other, o->buffer, o->every, o->phase,
            o->repeat,           o->vary, o->value, o->size,   o->grow,  verbs[o->verb].flags};
    }
    set_delay(request->delay_us);
    set_seed(request->seed);
    set_fault(request->fault);
    if (turns_begin)
        turns_begin(&request->plan);
    machine_run(m);
    if (turns_end)
        reply.ran = turns_end();
    set_fault("");
    for (unsigned i = 0; i < m->lanes; i++)
        reply.digest[i] = lane_digest(&m->lane[i]);
    machine_end(m);
    log = sorted_log(&bytes);
    reply.log_bytes = bytes;
    memcpy(reply.n_codes, m->n_codes, sizeof(reply.n_codes));
    put(&reply, sizeof(reply));
    for (unsigned i = 0; i < m->threads; i++)
        put(m->codes[i], m->n_codes[i] * sizeof(struct code));
    put(log, bytes);
    free(log);
}

int main(void) {
    static struct machine m;
    static struct fuzz_request request;
    _Static_assert(sizeof(struct code) == sizeof(struct fuzz_code), "sent as it is");
    find_simulator();
    machine_start(&m, "/proc/self/exe");
    put(&m.threads, 4); /* ready */
    for (;;) {
        get(&request, sizeof(request));
        serve(&m, &request);
    }
}
