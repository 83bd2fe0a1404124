/*
 * Turns ticks of the processor's counter into CLOCK_MONOTONIC. Runs once on the thread that starts
 * the recording, and then on the writer's. No lock, no memory, no driver.
 */
#include "shim/trace/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shim/base/file.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "shim/base/forbid.h"

enum {
    TRIES = 8,   /* for one pair */
    CLOSE = 400, /* ticks of an undisturbed look at the clock */
    SLOPE = 32   /* binary places after the point */
};

const char *cus_ticks_source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
bool cus_ticks_on;
uint8_t cus_ticks_unit;

void cus_ticks_use(bool ticks) {
    cus_ticks_on = ticks;
    cus_ticks_unit = ticks ? CUS_TICKS_UNIT : 0;
}

#ifdef __x86_64__

/* Leaf 0x80000007: the counter's speed does not depend on the processor's. A program may have
 * forbidden itself to read the counter. */
static bool runs_evenly(void) {
    unsigned a, b, c, d;
    int allowed = PR_TSC_ENABLE;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1 &&
           prctl(PR_GET_TSC, &allowed) == 0 && allowed == PR_TSC_ENABLE;
}

bool cus_ticks_usable(void) {
    char name[16] = "";
    int fd = cus_file_open(cus_ticks_source, O_RDONLY, 0);
    ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
    if (fd >= 0)
        close(fd);
    return n > 0 && strcmp(name, "tsc\n") == 0 && runs_evenly();
}

/* Reads the counter after all earlier loads. */
static uint64_t ordered(void) {
    __builtin_ia32_lfence();
    uint64_t ticks = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return ticks;
}

/* Reads the clock between two reads of the counter. Of several tries, the shortest counts. */
void cus_ticks_pair(struct cus_ticks *ticks) {
    uint64_t width = UINT64_MAX, at = 0, ns = 0;
    for (int i = 0; i < TRIES && width > CLOSE; i++) {
        uint64_t before = ordered(), now = cus_clock_ns(), took = ordered() - before;
        if (took >= width)
            continue;
        width = took;
        at = before + took / 2;
        ns = now;
    }
    cus_ticks_add(ticks, at, ns);
}

#else

bool cus_ticks_usable(void) {
    return false;
}

void cus_ticks_pair(struct cus_ticks *ticks) {
    uint64_t now = cus_clock_ns();
    cus_ticks_add(ticks, now, now);
}

#endif

static void set_slope(struct cus_ticks *ticks, uint32_t i) {
    struct cus_ticks_pair *pair = &ticks->pairs[i];
    pair->slope = (uint64_t)(((__uint128_t)(pair->ns - pair[-1].ns) << SLOPE) /
                             (pair->ticks - pair[-1].ticks));
}

/* Removes every second pair of the older half. */
static void thin_out(struct cus_ticks *ticks) {
    uint32_t n = 1;
    for (uint32_t i = 2; i < ticks->n; i += i < ticks->n / 2 ? 2 : 1, n++) {
        ticks->pairs[n] = ticks->pairs[i];
        set_slope(ticks, n);
    }
    ticks->n = n;
}

void cus_ticks_add(struct cus_ticks *ticks, uint64_t at, uint64_t ns) {
    if (ticks->n == CUS_TICKS_PAIRS)
        thin_out(ticks);
    struct cus_ticks_pair *last = ticks->n ? &ticks->pairs[ticks->n - 1] : NULL;
    if (last && ns < last->ns)
        ns = last->ns;
    if (last && at == last->ticks)
        return;
    /* The counter was set back (the machine was moved or slept). Earlier moments count as the
     * end of the time before. */
    if (last && at < last->ticks)
        ticks->n = 0;
    ticks->pairs[ticks->n++] = (struct cus_ticks_pair){at, ns, 0};
    if (ticks->n > 1)
        set_slope(ticks, ticks->n - 1);
}

uint64_t cus_ticks_ns(const struct cus_ticks *ticks, uint64_t moment) {
    const struct cus_ticks_pair *pairs = ticks->pairs;
    uint32_t last = ticks->n - 1;
    if (moment >= pairs[last].ticks)
        return pairs[last].ns;
    if (moment < pairs[0].ticks)
        return pairs[0].ns;
    /* Finds the first pair after the moment, which is nearly always the last pair. */
    uint32_t low = 0, high = last;
    if (moment >= pairs[last - 1].ticks)
        low = last - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (moment >= pairs[middle].ticks)
            low = middle;
        else
            high = middle;
    }
    uint64_t more =
        (uint64_t)((__uint128_t)(moment - pairs[low].ticks) * pairs[high].slope >> SLOPE);
    uint64_t most = pairs[high].ns - pairs[low].ns;
    return pairs[low].ns + (more < most ? more : most);
}

uint32_t cus_ticks_length(const struct cus_ticks *ticks, uint64_t began, uint32_t length) {
    uint64_t end = cus_ticks_ns(ticks, began + ((uint64_t)length << CUS_TICKS_UNIT));
    uint64_t ns = end - cus_ticks_ns(ticks, began);
    return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}
