/*
 * The program of a test: explores each case as the code is, then with each site of the named files
 * weaker, one at a time. What survives must be in the list, with its reason; what is in the list
 * must survive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/order/model.h"
#include "tests/order/order.h"
#undef clock_gettime

void order_begin(void);
bool explore_all(const struct order_test *test);

extern struct order_site *__start_order_sites[], *__stop_order_sites[];

static const char *name_of(int order) {
    switch (order) {
    case __ATOMIC_RELAXED:
        return "RELAXED";
    case __ATOMIC_ACQUIRE:
        return "ACQUIRE";
    case __ATOMIC_RELEASE:
        return "RELEASE";
    case __ATOMIC_ACQ_REL:
        return "ACQ_REL";
    default:
        return "SEQ_CST";
    }
}

static const char *base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void say_events(void) {
    const struct order *o = order_now;
    for (unsigned i = 0; i < o->n_events; i++) {
        const struct event *e = &o->event[i];
        const char *what = e->what == FENCE   ? "futex"
                           : e->what == READ  ? "reads"
                           : e->what == WRITE ? "writes"
                                              : "changes";
        printf("    thread %u %s", e->thread, what);
        if (e->location != UINT8_MAX)
            printf(" %p: %llu", (void *)(uintptr_t)o->location[e->location].address,
                   (unsigned long long)e->value);
        if (e->old)
            printf(" (an old value)");
        if (e->site)
            printf("  %s:%d %s", base(e->site->file), e->site->line, e->site->what);
        printf("\n");
    }
}

/* ---- sites ---- */

static bool same_site(const struct order_site *a, const struct order_site *b) {
    return a->kind == b->kind && a->line == b->line && strcmp(a->file, b->file) == 0 &&
           strcmp(a->function, b->function) == 0 && strcmp(a->what, b->what) == 0 &&
           a->order == b->order;
}

static void group_sites(void) {
    struct order *o = order_now;
    for (struct order_site **at = __start_order_sites; at < __stop_order_sites; at++) {
        unsigned g = 0;
        while (g < o->n_groups && !same_site(o->of[g], *at))
            g++;
        if (g == GROUPS)
            abort();
        if (g == o->n_groups)
            o->of[o->n_groups++] = *at;
        (*at)->group = (int)g;
    }
}

static bool is_checked(const struct order_site *site, const char *const *files) {
    for (; *files; files++)
        if (strcmp(base(site->file), *files) == 0)
            return true;
    return false;
}

/* ---- weaker ---- */

static const struct order_test *tests;
/* Not among the variables that each execution sets back. */
static struct sum {
    unsigned tried, killed, unlisted;
    uint64_t executions;
    bool used[GROUPS];
} * sum;

static bool is_killed(int group, int to, int failure_to) {
    struct order *o = order_now;
    bool killed = false;
    o->group = group;
    o->to = to;
    o->failure_to = failure_to;
    for (const struct order_test *test = tests; !killed && test->name; test++) {
        if ((test->once || test->deep) && !o->deep)
            continue;
        killed = !explore_all(test);
        sum->executions += o->executions;
    }
    o->group = o->to = o->failure_to = -1;
    return killed;
}

static void text_of(const struct order_site *site, const char *to, char *out, size_t bytes) {
    static const char *const kinds[] = {"LOAD", "STORE", "", "COMPARE", "WAKE", "TAKE"};
    if (site->kind == ORDER_RMW) /* its text begins with what it does */
        snprintf(out, bytes, "%s %s %s %s", base(site->file), site->function, site->what, to);
    else
        snprintf(out, bytes, "%s %s %s %s %s", base(site->file), site->function, kinds[site->kind],
                 site->what, to);
}

static void survived(const struct order_site *site, const char *to,
                     const struct order_weaker *list) {
    char text[300];
    text_of(site, to, text, sizeof text);
    for (unsigned i = 0; list && list[i].site; i++)
        if (strcmp(list[i].site, text) == 0) {
            sum->used[i] = true;
            printf("  survives: %s: %s\n", text, list[i].why);
            return;
        }
    printf("  SURVIVES: %s (line %d), and no reason is listed\n", text, site->line);
    sum->unlisted++;
}

/* Orders weaker than this one, the weakest first. */
static unsigned weaker(int kind, int order, int out[4]) {
    unsigned n = 0;
    bool reads = kind != ORDER_STORE,
         writes = kind == ORDER_STORE || kind == ORDER_RMW || kind == ORDER_CAS;
    if (order == __ATOMIC_RELAXED)
        return 0;
    out[n++] = __ATOMIC_RELAXED;
    if (reads && order != __ATOMIC_ACQUIRE && order != __ATOMIC_RELEASE)
        out[n++] = __ATOMIC_ACQUIRE;
    if (writes && order != __ATOMIC_ACQUIRE && order != __ATOMIC_RELEASE)
        out[n++] = __ATOMIC_RELEASE;
    if (reads && writes && order == __ATOMIC_SEQ_CST)
        out[n++] = __ATOMIC_ACQ_REL;
    return n;
}

static void weaken(int group, const struct order_weaker *list) {
    const struct order_site *site = order_now->of[group];
    int orders[4];
    if (site->kind == ORDER_WAKE || site->kind == ORDER_TAKE) {
        sum->tried++;
        if (is_killed(group, -1, -1))
            sum->killed++;
        else
            survived(site, "left out", list);
        return;
    }
    bool some = false;
    unsigned n = weaker(site->kind, site->order, orders);
    for (unsigned i = 0; i < n; i++) {
        if (some && orders[i] == __ATOMIC_ACQ_REL)
            continue; /* one that is weaker survived */
        sum->tried++;
        if (is_killed(group, orders[i], -1)) {
            sum->killed++;
            continue;
        }
        survived(site, name_of(orders[i]), list);
        some = true;
        if (orders[i] == __ATOMIC_RELAXED)
            break; /* then the others survive too */
    }
    n = site->kind == ORDER_CAS ? weaker(ORDER_LOAD, site->failure, orders) : 0;
    for (unsigned i = 0; i < n; i++) {
        char name[40];
        sum->tried++;
        if (is_killed(group, -1, orders[i])) {
            sum->killed++;
            continue;
        }
        snprintf(name, sizeof name, "fails %s", name_of(orders[i]));
        survived(site, name, list);
        break;
    }
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int order_main(int argc, char **argv, const struct order_test *all, const char *const *files,
               const struct order_weaker *list) {
    bool plain = false, wrong = false;
    uint64_t most = 0;
    const char *only = NULL, *site = NULL;
    order_begin();
    sum = calloc(1, sizeof *sum);
    struct order *o = order_now;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--as-it-is") == 0)
            plain = true;
        else if (strcmp(argv[i], "--deep") == 0)
            o->deep = true;
        else if (strcmp(argv[i], "--most") == 0 && i + 1 < argc)
            most = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--site") == 0 && i + 1 < argc)
            site = argv[++i];
        else
            return fprintf(
                       stderr,
                       "%s: --as-it-is | --deep | --case NAME | --site TEXT | --most EXECUTIONS\n",
                       argv[0]),
                   2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    tests = all;
    o->most = most;
    group_sites();
    double began = now_s();
    for (const struct order_test *test = all; test->name; test++) {
        if (only ? strcmp(only, test->name) != 0 : test->deep && !o->deep)
            continue;
        double since = now_s();
        bool right = explore_all(test);
        printf("%s: %llu executions, %llu cut short as seen before, %llu states, %.2f s%s%s\n",
               test->name, (unsigned long long)o->executions, (unsigned long long)o->pruned,
               (unsigned long long)o->states, now_s() - since, o->capped ? ", NOT ALL" : "",
               right ? "" : ": FAULT");
        if (!right) {
            printf("  %s\n", o->fault);
            say_events();
        }
        wrong |= !right || (o->capped && !most);
    }
    unsigned not_reached = 0;
    for (unsigned g = 0; !wrong && !plain && !only && g < o->n_groups; g++) {
        char text[300];
        if (!is_checked(o->of[g], files))
            continue;
        text_of(o->of[g], "", text, sizeof text);
        if (site && !strstr(text, site))
            continue;
        if (!o->executed[g]) {
            not_reached++;
            continue;
        }
        weaken((int)g, list);
    }
    for (unsigned i = 0; !wrong && !plain && !only && !site && list && list[i].site; i++)
        if (!sum->used[i]) {
            printf("  listed, but it does not survive: %s\n", list[i].site);
            wrong = true;
        }
    if (!plain && !only)
        printf("weaker: %u tried, %u found, %u survive; %u sites of the files are not reached; "
               "%llu executions, %.1f s in all\n",
               sum->tried, sum->killed, sum->tried - sum->killed, not_reached,
               (unsigned long long)sum->executions, now_s() - began);
    return wrong || sum->unlisted;
}
