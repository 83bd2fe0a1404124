/*
 * The table of probes, asked one after another, each in a child with its deadline. doctor_run is
 * called by verb_doctor.c. No probe sees the answer of another one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/doctor/probe.h"

static const struct doctor_probe probes[] = {
#define DOCTOR_PROBE(name, when, seconds, asks, advice)                                            \
    {#name, asks, doctor_ask_##name, when, seconds, advice},
#include "tools/doctor/probes.def"
};
enum { PROBES = sizeof probes / sizeof *probes };

struct doctor_facts *doctor_facts;

/* What a child needs, and where it answers. */
struct question {
    const struct doctor_probe *probe;
    struct doctor_answer *answer;
};
static const struct doctor_probe *asking;

void doctor_find(struct doctor_answer *answer, enum doctor_status status, const char *advice,
                 const char *format, ...) {
    size_t used = strlen(answer->value);
    va_list args;
    if (used && used + 2 < sizeof answer->value)
        used += (size_t)snprintf(answer->value + used, sizeof answer->value - used, "; ");
    va_start(args, format);
    vsnprintf(answer->value + used, sizeof answer->value - used, format, args);
    va_end(args);
    if (status > answer->status)
        answer->status = status;
    advice = status == DOCTOR_OK ? NULL : advice ? advice : asking ? asking->advice : NULL;
    for (unsigned i = 0; advice && i < answer->advices; i++)
        if (strcmp(answer->advice[i], advice) == 0)
            return;
    if (advice && answer->advices < DOCTOR_ADVICES)
        snprintf(answer->advice[answer->advices++], DOCTOR_ADVICE, "%s", advice);
}

void doctor_end_text(enum doctor_end end, int signal, unsigned seconds, char *out, size_t bytes) {
    if (end == DOCTOR_LATE)
        snprintf(out, bytes, "no answer within %u s", seconds);
    else if (end == DOCTOR_DIED && signal)
        snprintf(out, bytes, "it was ended by signal %d (%s)", signal, strsignal(signal));
    else
        snprintf(out, bytes, "%s",
                 end == DOCTOR_NO_CHILD ? "no process could be started" : "it ended early");
}

static void work(void *context) {
    struct question *question = context;
    question->probe->ask(question->answer);
}

static void ask(const struct doctor_probe *probe, struct doctor_answer *answer) {
    struct question question = {probe, answer};
    char text[128];
    int signal;
    asking = probe;
    enum doctor_end end = doctor_apart(work, &question, probe->seconds, &signal);
    if (end != DOCTOR_DONE) {
        doctor_end_text(end, signal, probe->seconds, text, sizeof text);
        doctor_find(answer, DOCTOR_UNKNOWN, "send this report as a bug report",
                    "the question was not answered: %s", text);
    }
}

/* In memory that children share; the probes find them through doctor_facts. */
struct all {
    struct doctor_facts facts;
    struct doctor_answer answers[PROBES];
};

enum doctor_exit doctor_run(const struct doctor_asked *asked) {
    struct doctor_probe chosen[PROBES];
    unsigned n = 0;
    bool wrong = false;
    struct all *all = doctor_shared(sizeof *all);
    if (!all) {
        fputs("cusplice: not enough memory\n", stderr);
        return DOCTOR_BAD;
    }
    doctor_facts = &all->facts;
    doctor_facts->asked = asked;
    doctor_gather_driver();
    doctor_gather_selftest();
    for (unsigned i = 0; i < PROBES; i++) {
        if (probes[i].when == DOCTOR_FOR_PROGRAM && !asked->program)
            continue;
        chosen[n] = probes[i];
        ask(&probes[i], &all->answers[n]);
        wrong |= all->answers[n].status == DOCTOR_NOT_RIGHT;
        n++;
    }
    doctor_show(chosen, all->answers, n, asked->json, asked->width);
    doctor_shared_free(all, sizeof *all);
    return wrong ? DOCTOR_WRONG : DOCTOR_FINE;
}
