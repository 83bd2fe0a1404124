/*
 * Weak order (CUSIM_ORDER=weak): what a kernel or copy does in parts, which CUDA does not order.
 *
 * Blocks of a grid run in a random order, and pause in between. A kernel that triggers lets
 * programmatic dependents begin before it ends. A copy shows in parts. Called on threads that
 * execute, without cusim.lock; cusim_grid_passed is called with it.
 */
#include "harness/sim/cusim.h"

#include <string.h>
#include <time.h>

/* Without __tls_get_addr: of a block of that call gcc 12's LeakSanitizer takes what lies in front
 * of it for its size, and reads beyond it when the program ends. */
#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))

static OF_THREAD struct cusim_grid *grid_now;
/* The order of the blocks of the grid that the thread runs. */
static OF_THREAD struct {
    size_t first, step, pause;
    bool last;
} blocks;

static uint64_t choose(uint64_t below) {
    return cusim_random(&cusim_thread_self()->random) % below;
}

static size_t common_divisor(size_t a, size_t b) {
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Lets a dependent go ahead, for 2 ms at most: nobody may rely on that. */
static void linger(const struct cusim_grid *grid, unsigned passed) {
    for (int i = 0; i < 40; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        cusim_lock();
        bool over = *grid->passed != passed;
        cusim_unlock();
        if (over)
            return;
    }
}

static void start(struct cusim_grid *grid) {
    cusim_lock();
    grid->started = true;
    pthread_cond_broadcast(grid->changed);
    unsigned passed = *grid->passed;
    cusim_unlock();
    if (choose(2))
        linger(grid, passed);
}

/* The i-th block is first + i * step modulo n; each block comes once, as step and n have no common
 * divisor. */
static size_t next_block(size_t i, size_t n) {
    if (i == 0) {
        blocks.first = choose(n);
        do
            blocks.step = 1 + choose(n);
        while (common_divisor(blocks.step, n) != 1);
        blocks.pause = 1 + choose(2 * n); /* every second grid pauses once */
    }
    blocks.last = i + 1 == n;
    if (blocks.last && grid_now && grid_now->tells_start)
        start(grid_now);
    if (i > 0 && i == blocks.pause)
        cusim_delay();
    return (size_t)(((unsigned __int128)i * blocks.step + blocks.first) % n);
}

void cusim_grid_enter(struct cusim_grid *grid) {
    grid_now = grid;
    blocks.last = true; /* of a kernel that does not ask for its blocks */
}

void cusim_grid_passed(struct cusim_grid *grid) {
    *grid->passed += grid->early;
    grid->early = false;
}

/* Counts once all other blocks have ended: they run one after another. */
static void trigger(void) {
    struct cusim_grid *grid = grid_now;
    if (!grid || !blocks.last || grid->triggered)
        return;
    cusim_lock();
    grid->triggered = true;
    bool dependents = grid->trigger(grid);
    unsigned passed = *grid->passed;
    cusim_unlock();
    if (dependents && choose(2))
        linger(grid, passed);
}

static void wait_for_those_before(void) {
    struct cusim_grid *grid = grid_now;
    if (!grid)
        return;
    cusim_lock();
    cusim_grid_passed(grid);
    while (grid->behind > 0)
        pthread_cond_wait(grid->changed, &cusim.lock);
    cusim_unlock();
}

const struct cusim_calls cusim_calls_weak = {next_block, trigger, wait_for_those_before};

/* For kernels of tests, which are in no library. NULL: order is not weak. */
__attribute__((visibility("default"))) const struct cusim_calls *cuSimKernelCalls(void);
const struct cusim_calls *cuSimKernelCalls(void) {
    return cusim_get_options()->weak ? &cusim_calls_weak : NULL;
}

void cusim_copy_row(unsigned char *dst, const unsigned char *src, size_t bytes) {
    enum { PART = 64, PARTS = 4 };
    bool apart = dst + bytes <= src || src + bytes <= dst;
    if (!cusim.options.weak || !apart || bytes <= PART) {
        memmove(dst, src, bytes);
        return;
    }
    size_t part = (bytes / PARTS + PART - 1) / PART * PART, n = (bytes + part - 1) / part;
    size_t first = choose(n), pause = choose(2 * n);
    for (size_t i = 0; i < n; i++) {
        size_t at = (first + i) % n * part;
        if (i > 0 && i == pause)
            cusim_delay();
        memcpy(dst + at, src + at, bytes - at < part ? bytes - at : part);
    }
}
