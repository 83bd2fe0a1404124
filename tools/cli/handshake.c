/*
 * Reads the hand-shake file, since the dynamic loader says nothing about success and little about
 * failure. verb_run.c calls it. It never talks to the library itself.
 */
#include "tools/cli/handshake.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/clean.h"
#include "shim/base/file.h"
#include "tools/cli/program.h"
#include "tools/cli/run_table.h"
#include "tools/cli/temporary.h"
#include "tools/cli/verb.h"

struct tally {
    unsigned there, absent, loaded, on, off, exits;
    unsigned busy; /* processes with ops */
    unsigned long long ops, graphs;
    /* Of those that were to be recorded from a later step on: how many had that step. */
    unsigned late, reached;
    unsigned long long steps, from; /* of the one with the most steps */
    struct cli_verified verified;
};

enum { FOUND = 16, LINE = 1024 };

/* What was found beside the library, each thing once, however many processes say it. */
struct found {
    unsigned n;
    char texts[FOUND][LINE];
};

/* What a process did not meet. It counts for the run if no process met it. */
struct unmet {
    unsigned n, said[FOUND];
    char texts[FOUND][LINE];
};

static char file[PATH_MAX];
static char outer[PATH_MAX]; /* that of a launcher which started this one; "": none */

bool cli_handshake_begin(const char *folder) {
    const char *before = getenv("CUSPLICE_HANDSHAKE");
    snprintf(outer, sizeof outer, "%s", before ? before : "");
    int fd = -1;
    if (folder && (size_t)snprintf(file, sizeof file, "%s/.cusplice-XXXXXX", folder) < sizeof file)
        fd = mkstemp(file);
    if (fd < 0 && cli_temporary(file, sizeof file, "cusplice-XXXXXX"))
        fd = mkstemp(file);
    if (fd < 0) {
        *file = 0;
        unsetenv("CUSPLICE_HANDSHAKE"); /* an outer launcher's */
        return false;
    }
    close(fd);
    setenv("CUSPLICE_HANDSHAKE", file, 1);
    return true;
}

void cli_handshake_drop(void) {
    if (*file)
        unlink(file);
    *file = 0;
}

/* The processes of a run within a run belong to both. */
static void hand_on(const char *line) {
    const char *why;
    int fd = *outer ? cus_file_open_output(outer, CUS_FILE_THERE, &why) : -1;
    if (fd < 0)
        return;
    (void)cus_file_write(fd, line, strlen(line), CUS_FILE_PATIENCE_MS);
    close(fd);
}

/* One line; what does not parse counts for nothing. */
static void count_line(struct tally *tally, const char *line) {
    long pid;
    char word[16];
    unsigned long long ops, graphs;
    int fields = sscanf(line, "%ld %15s %llu %llu", &pid, word, &ops, &graphs);
    if (fields < 2)
        return;
    tally->there += strcmp(word, "there") == 0;
    tally->absent += strcmp(word, "absent") == 0;
    tally->loaded += strcmp(word, "loaded") == 0;
    tally->on += strcmp(word, "on") == 0;
    tally->off += strcmp(word, "off") == 0;
    if (strcmp(word, "exit") == 0 && fields == 4) {
        tally->exits++;
        tally->busy += ops > 0;
        tally->ops += ops;
        tally->graphs += graphs;
    }
    if (strcmp(word, "steps") == 0 && fields == 4) {
        tally->late++;
        tally->reached += ops > graphs;
        tally->steps = ops > tally->steps ? ops : tally->steps;
        tally->from = graphs;
    }
    if (strcmp(word, "verified") == 0 && fields == 4) {
        tally->verified.launches += ops;
        tally->verified.different += graphs;
    }
}

/* The text behind the process and the word. */
static void note_found(struct found *found, const char *line) {
    static const struct {
        const char *word, *says;
    } kinds[] = {
        {"front", "another interposer stands in front of the library: "},
        {"behind", "another interposer stands behind the library, and is called by it: "},
        {"led", "this was bound past the library, and led to it: "},
        {"passes", "nothing was deferred from some moment on: "},
        {"presets", "rules of presets held, since a library is loaded (--set presets=off switches "
                    "that off): "},
    };
    char word[16], *to = found->texts[found->n < FOUND ? found->n : 0];
    int text = 0;
    if (found->n == FOUND || sscanf(line, "%*d %15s %n", word, &text) != 1 || !text)
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(word, kinds[i].word) != 0)
            continue;
        size_t bytes = (size_t)snprintf(to, LINE, "%s%.*s", kinds[i].says,
                                        (int)strcspn(line + text, "\n"), line + text);
        cus_clean(to, bytes < LINE ? bytes : LINE - 1);
        for (unsigned old = 0; old < found->n; old++)
            if (strcmp(found->texts[old], to) == 0)
                return;
        found->n++;
    }
}

/* How much of it two processes say alike: the nearest kernel is one of their own. */
static size_t bytes_alike(const char *text) {
    const char *own = strstr(text, CUS_UNMET_OWN);
    return own ? (size_t)(own - text) : strcspn(text, "\n");
}

static void note_unmet(struct unmet *unmet, const char *line) {
    char word[16];
    int text = 0;
    if (sscanf(line, "%*d %15s %n", word, &text) != 1 || !text || strcmp(word, "unmet") != 0 ||
        !line[text])
        return;
    size_t alike = bytes_alike(line + text);
    unsigned at = 0;
    while (at < unmet->n && (bytes_alike(unmet->texts[at]) != alike ||
                             memcmp(unmet->texts[at], line + text, alike) != 0))
        at++;
    if (at == FOUND)
        return;
    if (at == unmet->n) {
        snprintf(unmet->texts[at], LINE, "%.*s", (int)strcspn(line + text, "\n"), line + text);
        unmet->n++;
    }
    unmet->said[at]++;
}

static void say_unmet(const struct unmet *unmet, const struct tally *tally) {
    unsigned lost = tally->on > tally->exits ? tally->on - tally->exits : 0;
    for (unsigned i = 0; i < unmet->n; i++) {
        if (unmet->said[i] < tally->busy)
            continue;
        if (lost)
            cli_say("%s (as far as is known: %u of %u processes ended without their exit handlers)",
                    unmet->texts[i], lost, tally->on);
        else
            cli_say("%s", unmet->texts[i]);
    }
}

/* True: the steps that were to be recorded never came. */
static bool is_missed(const struct tally *tally) {
    return tally->late && !tally->reached && tally->ops;
}

static void say_missed(const struct tally *tally) {
    if (is_missed(tally))
        cli_say("the trace holds nothing: it was to begin with step %llu, and the program had %llu "
                "steps, counted from 0",
                tally->from, tally->steps);
}

static void say_never_up(const char *program, const struct tally *tally, bool mode_off) {
    char why[PATH_MAX + 128];
    cli_program_obstacle(program, why, sizeof why);
    if (*why)
        cli_say("the library never came up: %s", why);
    else if (mode_off)
        cli_say("mode is off: the program ran as it is");
    else if (tally->absent)
        cli_say(
            "the library never came up: libcuda.so.1 was not found, which %s or a process that "
            "it started asked for (no NVIDIA driver on this machine, or none in this container?)",
            program);
    else if (!tally->there)
        cli_say("the library never came up: it was not loaded into %s (the dynamic loader refused "
                "it, or the program ended before it began: what is said above tells)",
                program);
    else
        cli_say("the library never came up: %s used no CUDA (neither it nor any process that it "
                "started asked for the driver; one that clears LD_PRELOAD is not seen, nor one on "
                "another machine without --stats FOLDER/ on storage that both share)",
                program);
}

static void say_tally(const struct tally *tally, const char *program, bool mode_off) {
    if (tally->ops)
        return;
    if (!tally->loaded && !tally->on && !tally->off && !tally->exits)
        say_never_up(program, tally, mode_off);
    else if ((tally->off || mode_off) && !tally->on)
        cli_say("mode is off: the program ran as it is");
    else if (!tally->on && !tally->exits)
        cli_say("the library came up but %s never initialised CUDA (no device, or no driver?)",
                program);
    else if (tally->on > tally->exits)
        cli_say("the library came up but saw no launch that it could count: %u of %u processes "
                "ended without their exit handlers (by a signal or _exit)",
                tally->on - tally->exits, tally->on);
    else if (tally->graphs)
        cli_say("the library saw no launch: %s launched only graphs of its own (%llu times), which "
                "are left as they are",
                program, tally->graphs);
    else
        cli_say("the library saw no launch: %s initialised CUDA and launched nothing", program);
}

bool cli_handshake_report(const char *program, bool mode_off, struct cli_verified *verified) {
    struct tally tally = {0};
    *verified = tally.verified;
    if (!*file)
        return false;
    FILE *lines = fopen(file, "r");
    char line[CUS_HANDSHAKE_LINE + 1];
    static struct found found;
    static struct unmet unmet;
    while (lines && fgets(line, sizeof line, lines)) {
        count_line(&tally, line);
        cli_table_take(line);
        hand_on(line);
        note_found(&found, line);
        note_unmet(&unmet, line);
    }
    if (lines)
        fclose(lines);
    cli_handshake_drop();
    say_tally(&tally, program, mode_off);
    for (unsigned i = 0; i < found.n; i++)
        cli_say("%s", found.texts[i]);
    say_unmet(&unmet, &tally);
    say_missed(&tally);
    *verified = tally.verified;
    verified->missed = is_missed(&tally);
    verified->exits = tally.exits;
    return tally.ops > 0;
}
