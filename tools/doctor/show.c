/*
 * Prints the answers: lines for people, or JSON. table.c calls it. One thread; no state. Names of
 * files and variables are others' texts, and printed by clean.h or json.h alone.
 */
#include <stdio.h>

#include "shim/base/version.h"
#include "tools/doctor/probe.h"
#include "tools/trace/clean.h"
#include "tools/trace/json.h"

enum { WORD = 8, NAME = 12, INDENT = 2 + WORD + NAME };

static const char *const words[DOCTOR_STATUSES] = {"ok", "note", "unknown", "wrong"};

static unsigned count(const struct doctor_answer *answers, unsigned n, enum doctor_status status) {
    unsigned found = 0;
    for (unsigned i = 0; i < n; i++)
        found += answers[i].status == status;
    return found;
}

static void print_answer(const struct doctor_probe *probe, const struct doctor_answer *answer,
                         unsigned width) {
    fputs("  ", stdout);
    clean_cell(stdout, words[answer->status], WORD);
    clean_cell(stdout, probe->name, NAME);
    clean_fold(stdout, answer->value, INDENT, INDENT, width);
    for (unsigned i = 0; i < answer->advices; i++) {
        printf("%*s-> ", INDENT, "");
        clean_fold(stdout, answer->advice[i], INDENT + 3, INDENT + 3, width);
    }
}

static void print_json(const struct doctor_probe *probes, const struct doctor_answer *answers,
                       unsigned n) {
    struct cus_json json = json_to(stdout, CUS_JSON_INDENTED);
    cus_json_open(&json, NULL, '{');
    cus_json_text(&json, "version", CUSPLICE_VERSION);
    for (enum doctor_status status = DOCTOR_OK; status < DOCTOR_STATUSES; status++)
        cus_json_number(&json, words[status], count(answers, n, status));
    cus_json_open(&json, "answers", '{');
    for (unsigned i = 0; i < n; i++) {
        cus_json_open(&json, probes[i].name, '{');
        cus_json_text(&json, "asks", probes[i].asks);
        cus_json_text(&json, "status", words[answers[i].status]);
        cus_json_text(&json, "value", answers[i].value);
        cus_json_open(&json, "advice", '[');
        for (unsigned k = 0; k < answers[i].advices; k++)
            cus_json_text(&json, NULL, answers[i].advice[k]);
        cus_json_close(&json, ']');
        cus_json_close(&json, '}');
    }
    cus_json_close(&json, '}');
    cus_json_close(&json, '}');
    cus_json_end(&json);
}

void doctor_show(const struct doctor_probe *probes, const struct doctor_answer *answers, unsigned n,
                 bool json, unsigned width) {
    if (json) {
        print_json(probes, answers, n);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        print_answer(&probes[i], &answers[i], width);
    unsigned wrong = count(answers, n, DOCTOR_NOT_RIGHT), notes = count(answers, n, DOCTOR_NOTE),
             unknown = count(answers, n, DOCTOR_UNKNOWN);
    if (wrong)
        printf("%u thing%s wrong; ", wrong, wrong == 1 ? " is" : "s are");
    else
        printf("nothing is wrong; ");
    printf("%u to note, %u not known\n", notes, unknown);
}
