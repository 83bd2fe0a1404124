/*
 * Prints what `cusplice rules` proposes: rules, and in comments all else that is known. One thread.
 * No text of a trace ends a line, so none becomes a rule that is not proposed.
 */
#include "tools/cli/rules_found.h"

#include <inttypes.h>
#include <string.h>

#include "tools/trace/clean.h"
#include "tools/trace/facts.h"

/* Parts of the file, in this order. */
enum { WAITS, GAINS, OTHERS, ALIKE, SECTIONS };
enum {
    GAIN = 50 /* a rule is proposed where it saves one in so many */,
    WIDTH = 80 /* since it is read in editors */
};

static bool gains(const struct rules_played *played, const struct rules_kernel *kernel) {
    return kernel->played && kernel->more_us * GAIN <= -played->baseline && kernel->more_us < -0.05;
}

/* A name that no pattern stands for is only told of. */
static void print_rule(FILE *to, const struct rules_kernel *kernel, const char *key,
                       bool proposed) {
    if (!rules_may_name(kernel->name))
        clean_print(to, "# %s: no pattern stands for this name alone: %.200s%s\n", key,
                    kernel->name, strlen(kernel->name) > 200 ? " ..." : "");
    else
        clean_print(to, "%s%s = mangled:%s\n", proposed ? "" : "# ", key, kernel->name);
}

static void print_kernel(FILE *to, const struct rules_played *played,
                         const struct rules_found *found, const struct rules_kernel *kernel) {
    char facts[400], *at = facts, *end = facts + sizeof facts;
    if (found->gpu_ns)
        at += snprintf(at, (size_t)(end - at), "%.1f %% of the GPU's time, ",
                       look_share(kernel->gpu_ns, found->gpu_ns));
    at += snprintf(at, (size_t)(end - at), "%" PRIu64 " launches", kernel->calls);
    if (kernel->reshaped)
        at += snprintf(at, (size_t)(end - at), ", another shape than before in %" PRIu64,
                       kernel->reshaped);
    if (kernel->slowest)
        at += snprintf(at, (size_t)(end - at), ", %.1f to %.1f us each", kernel->fast / 1e3,
                       kernel->slowest / 1e3);
    if (kernel->played)
        snprintf(at, (size_t)(end - at), "; as a break %+.1f us of the host a step (%+.1f %%)",
                 kernel->more_us,
                 played->baseline > 0 ? 100 * kernel->more_us / played->baseline : 0);
    clean_comment(to, WIDTH, "%.120s: %s", kernel->base, facts);
}

/* Playing is exact: where a rule makes no difference at all, the kernel is in no graph already. */
static bool is_alike(const struct rules_kernel *kernel) {
    return kernel->played && !(kernel->more_us < 0) && !(kernel->more_us > 0);
}

static int section_of(const struct rules_played *played, const struct rules_kernel *kernel) {
    if (*kernel->waits)
        return WAITS;
    return gains(played, kernel) ? GAINS : is_alike(kernel) ? ALIKE : OTHERS;
}

static void print_section(FILE *to, const struct rules_played *played,
                          const struct rules_found *found, int which) {
    static const char *const heads[] = {
        "These wait: nothing may be deferred behind them, and no graph holds them.",
        "These make a step cheaper as breaks.",
        "These are best left in graphs; what a rule would cost stands beside each.",
        "A rule changes nothing for these: as it was recorded, by its rules, they are in no graph.",
    };
    bool any = false;
    for (unsigned i = 0; i < found->n; i++) {
        const struct rules_kernel *kernel = &found->kernels[i];
        if (section_of(played, kernel) != which)
            continue;
        if (!any) {
            fputs("\n", to);
            clean_comment(to, WIDTH, "%s", heads[which]);
        }
        any = true;
        print_kernel(to, played, found, kernel);
        if (*kernel->waits)
            clean_comment(to, WIDTH, "it waits: %s", kernel->waits);
        print_rule(to, kernel, which == WAITS ? "never_defer" : "eager",
                   which == WAITS || which == GAINS);
    }
}

void rules_show(const struct look *look, const struct rules_found *found,
                const struct rules_played *played, FILE *to) {
    clean_print(to, "# Proposed by cusplice rules for %.400s\n", look->trace->path);
    clean_comment(to, WIDTH,
                  "%u ops in %u steps; %.1f us of the host a step and %.1f %% of ops in graphs, %s "
                  "(cusplice whatif)",
                  look->model->n_ops, look->model->n_steps, played->baseline, played->share,
                  played->guessed ? "by the settings of here" : "as recorded");
    if (facts_imported(look->facts))
        clean_comment(to, WIDTH, "the trace is imported " FACTS_IMPORT);
    if (played->guessed)
        clean_comment(
            to, WIDTH,
            "the trace does not say by which options it was recorded: taken are those of here");
    if (!found->gpu_ns)
        clean_comment(
            to, WIDTH,
            "no GPU times (record --gpu-times): kernels stand by the number of their launches");
    if (!found->presets)
        clean_comment(
            to, WIDTH,
            "no presets are installed: kernels that wait for other GPUs are not known by name");
    if (found->all > found->n)
        clean_comment(to, WIDTH, "%u kernels of %u are looked at", found->n, found->all);
    fputs("[rules]\n", to);
    for (int section = 0; section < SECTIONS; section++)
        print_section(to, played, found, section);
}
