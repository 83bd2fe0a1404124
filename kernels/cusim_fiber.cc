/*
 * Fibers, shared memory and traps for the CPU form of the kernels (libcusim_kernels.so).
 *
 * The threads of a block are fibers of the host thread that runs the block. Each fiber runs until
 * it meets a barrier or ends; when all have, the next round begins, as __syncthreads requires.
 * Nothing else switches fibers, so a kernel must wait for another thread of its block only at a
 * barrier.
 *
 * Called on the simulator's stream workers, several at once. All state belongs to the calling
 * thread; no lock is held or taken, and nothing here may call CUDA.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kernels/cus_kernel.h"

#define CUSIM_EXPORT extern "C" __attribute__((visibility("default")))

__thread struct cusim_dim threadIdx, blockIdx, blockDim, gridDim;
__thread void *cusim_dynamic_shared;
__thread unsigned cusim_dynamic_bytes;

namespace {

constexpr size_t stack_bytes = 64 * 1024;

/* A saved fiber is its stack pointer; the registers that a call must keep are right above it. */
using saved = void *;

extern "C" void cusim_switch(saved *from, saved to);
#if defined(__x86_64__)
enum {
    KEPT = 8,
    ENTRY = 6
}; /* six registers, the address for `ret`, a word that aligns the stack */
__asm__(".text\n"
        ".globl cusim_switch\n"
        ".hidden cusim_switch\n"
        ".type cusim_switch, @function\n"
        "cusim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size cusim_switch, . - cusim_switch\n");
#else
enum { KEPT = 20, ENTRY = 11 }; /* x19 to x30, d8 to d15; `ret` goes to x30 */
__asm__(".text\n"
        ".globl cusim_switch\n"
        ".hidden cusim_switch\n"
        ".type cusim_switch, %function\n"
        "cusim_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n"
        "    str x2, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size cusim_switch, . - cusim_switch\n");
#endif

void prepare(saved *fiber, char *stack, void (*entry)(void)) {
    void **top = (void **)(stack + stack_bytes) - KEPT;
    for (int i = 0; i < KEPT; i++) {
        top[i] = nullptr;
    }
    top[ENTRY] = (void *)entry;
    *fiber = top;
}

void change(saved *from, saved *to) {
    cusim_switch(from, *to);
}

struct fiber {
    saved state;
    bool done;
};

struct crew;
void go_with_thread(crew *c);

/* The fibers of one host thread, kept from block to block and freed when the thread ends. */
struct crew {
    unsigned room = 0;
    char *stacks = nullptr;
    fiber *fibers = nullptr;
    fiber *current = nullptr;
    saved scheduler = {};
    cusim_thread_fn thread = nullptr;
    const void *call = nullptr;

    void release() {
        if (room) {
            munmap(stacks, room * stack_bytes);
            free(fibers);
            room = 0;
        }
    }

    void reserve(unsigned count) {
        if (count <= room) {
            return;
        }
        release();
        void *m = mmap(nullptr, count * stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED) {
            fprintf(stderr, "cusim: no memory for the stacks of a block of %u threads\n", count);
            abort();
        }
        stacks = (char *)m;
        fibers = (fiber *)calloc(count, sizeof *fibers);
        if (!fibers) {
            abort();
        }
        room = count;
        go_with_thread(this);
    }
};

pthread_key_t thread_end;
pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

/* The stacks go when the thread ends. The C library says so, since a destructor in C++ would need
 * libgcc_s.so, and packages have none. */
void go_with_thread(crew *c) {
    pthread_once(&thread_end_once, [] {
        pthread_key_create(&thread_end, [](void *ended) { ((crew *)ended)->release(); });
    });
    pthread_setspecific(thread_end, c);
}

__thread crew mine;
__thread int trapped;

/* A fiber begins here. The function never returns, because nothing is below it on the fiber's
 * stack. */
void fiber_main() {
    crew *c = &mine;
    c->thread(c->call);
    c->current->done = true;
    change(&c->current->state, &c->scheduler);
    abort();
}

void run_block(crew *c, unsigned count) {
    for (unsigned t = 0; t < count; t++) {
        c->fibers[t].done = false;
        prepare(&c->fibers[t].state, c->stacks + t * stack_bytes, fiber_main);
    }
    for (unsigned left = count; left;) {
        for (unsigned t = 0; t < count; t++) {
            fiber *f = &c->fibers[t];
            if (f->done) {
                continue;
            }
            threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
            c->current = f;
            change(&c->scheduler, &f->state);
            left -= f->done;
        }
    }
    c->current = nullptr;
}

} // namespace

void cusim_run_fibers(const unsigned grid[3], const unsigned block[3], cusim_thread_fn thread,
                      const void *call) {
    crew *c = &mine;
    unsigned count = block[0] * block[1] * block[2];
    c->reserve(count);
    c->thread = thread;
    c->call = call;
    for (size_t b = 0; b < (size_t)grid[0] * grid[1] * grid[2]; b++) {
        blockIdx = cusim_next_block(b, grid);
        run_block(c, count);
    }
}

void cusim_barrier(void) {
    crew *c = &mine;
    if (!c->current) {
        fprintf(stderr, "cusim: a kernel that waits at a barrier is registered by CUS_KERNEL; "
                        "it wants CUS_KERNEL_SYNC\n");
        abort();
    }
    change(&c->current->state, &c->scheduler);
}

/* x changes fastest. */
struct cusim_dim cusim_next_block(size_t i, const unsigned grid[3]) {
    size_t b = i;
    if (cusim_kernel_calls) {
        b = cusim_kernel_calls->block(i, (size_t)grid[0] * grid[1] * grid[2]);
    }
    return {(unsigned)(b % grid[0]), (unsigned)(b / grid[0] % grid[1]),
            (unsigned)(b / grid[0] / grid[1])};
}

void cusim_trigger(void) {
    if (cusim_kernel_calls) {
        cusim_kernel_calls->trigger();
    }
}

void cusim_wait(void) {
    if (cusim_kernel_calls) {
        cusim_kernel_calls->wait();
    }
}

void cusim_trap(void) {
    trapped = 1;
}

void *cusim_shared_alloc(size_t bytes) {
    if (!bytes) {
        return nullptr;
    }
    void *m = aligned_alloc(128, (bytes + 127) / 128 * 128);
    if (!m) {
        abort();
    }
    /* Shared memory holds garbage when a block begins; this makes it the same, visible garbage
     * each time. */
    memset(m, 0xcd, bytes);
    return m;
}

void cusim_shared_free(void *memory) {
    free(memory);
}

CUSIM_EXPORT const struct cusim_kernel *cusim_kernel_find(const char *name) {
    for (const struct cusim_kernel *k = cusim_kernel_head; k; k = k->next) {
        if (!strcmp(k->name, name)) {
            return k;
        }
    }
    return nullptr;
}

CUSIM_EXPORT int cusim_kernel_take_trap(void) {
    int was = trapped;
    trapped = 0;
    return was;
}
