/*
 * Live handles, timelines, and the state of a thread.
 *
 * The caller holds cusim.lock, with two exceptions: cusim_thread_self uses nothing shared, and a
 * thread's destructor takes the lock itself.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>

/* Open addressing with linear probing. A removed entry leaves a tombstone until the next growth. */
static struct {
    uintptr_t key;
    enum cusim_kind kind;
} * handles;
static size_t handle_capacity, handle_used;
enum { TOMBSTONE = 1 };

static size_t handle_place(uintptr_t key) {
    return (size_t)((key >> 4) * 0x9e3779b97f4a7c15u >> 20) & (handle_capacity - 1);
}

static void handle_grow(void) {
    size_t old_capacity = handle_capacity;
    __typeof__(handles) old = handles;
    size_t live = 0;
    for (size_t i = 0; i < old_capacity; i++)
        live += old[i].key > TOMBSTONE;
    handle_capacity = 1024;
    while (handle_capacity < live * 4)
        handle_capacity *= 2;
    handles = calloc(handle_capacity, sizeof *handles);
    handle_used = 0;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].key > TOMBSTONE)
            cusim_handle_add((const void *)old[i].key, old[i].kind);
    free(old);
}

void cusim_handle_add(const void *handle, enum cusim_kind kind) {
    if (handle_used * 2 >= handle_capacity)
        handle_grow();
    size_t i = handle_place((uintptr_t)handle);
    while (handles[i].key > TOMBSTONE)
        i = (i + 1) & (handle_capacity - 1);
    handle_used += handles[i].key == 0;
    handles[i].key = (uintptr_t)handle;
    handles[i].kind = kind;
}

static size_t handle_find(const void *handle) {
    if (handle_capacity == 0 || (uintptr_t)handle <= TOMBSTONE)
        return SIZE_MAX;
    size_t i = handle_place((uintptr_t)handle);
    for (; handles[i].key != 0; i = (i + 1) & (handle_capacity - 1))
        if (handles[i].key == (uintptr_t)handle)
            return i;
    return SIZE_MAX;
}

void cusim_handle_remove(const void *handle) {
    size_t i = handle_find(handle);
    if (i != SIZE_MAX)
        handles[i].key = TOMBSTONE;
}

bool cusim_handle_is(const void *handle, enum cusim_kind kind) {
    size_t i = handle_find(handle);
    return i != SIZE_MAX && handles[i].kind == kind;
}

struct cusim_timeline *cusim_timeline_new(void) {
    struct cusim_timeline *tl = calloc(1, sizeof *tl);
    tl->refs = 1;
    return tl;
}

struct cusim_timeline *cusim_timeline_ref(struct cusim_timeline *tl) {
    tl->refs++;
    return tl;
}

void cusim_timeline_unref(struct cusim_timeline *tl) {
    if (tl && --tl->refs == 0)
        free(tl);
}

void cusim_timeline_advance(struct cusim_timeline *tl, uint64_t done) {
    tl->done = done;
    for (struct cusim_waiter **at = &tl->waiters; *at;) {
        struct cusim_waiter *waiter = *at;
        if (waiter->target <= done) {
            *at = waiter->next;
            pthread_cond_signal(waiter->cond);
        } else {
            at = &waiter->next;
        }
    }
}

void cusim_timeline_wait(struct cusim_timeline *tl, uint64_t target) {
    if (tl->done >= target)
        return;
    struct cusim_waiter self = {
        .next = tl->waiters, .target = target, .cond = &cusim_thread_self()->cond};
    tl->waiters = &self;
    tl->refs++;
    while (tl->done < target)
        pthread_cond_wait(self.cond, &cusim.lock);
    cusim_timeline_unref(tl);
}

struct cusim_mark *cusim_mark_new(struct cusim_timeline *tl, uint64_t target) {
    struct cusim_mark *mark = calloc(1, sizeof *mark);
    mark->refs = 1;
    mark->tl = cusim_timeline_ref(tl);
    mark->target = target;
    return mark;
}

struct cusim_mark *cusim_mark_ref(struct cusim_mark *mark) {
    mark->refs++;
    return mark;
}

void cusim_mark_unref(struct cusim_mark *mark) {
    if (mark && --mark->refs == 0) {
        cusim_timeline_unref(mark->tl);
        free(mark);
    }
}

static __thread struct cusim_thread *self;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void thread_end(void *thread) {
    cusim_lock();
    cusim_thread_streams_close(thread);
    cusim_unlock();
    pthread_cond_destroy(&((struct cusim_thread *)thread)->cond);
    self = NULL;
    free(thread);
}

static void make_key(void) {
    pthread_key_create(&thread_key, thread_end);
}

struct cusim_thread *cusim_thread_self(void) {
    if (!self) {
        pthread_once(&thread_once, make_key);
        self = calloc(1, sizeof *self);
        self->capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        pthread_cond_init(&self->cond, NULL);
        pthread_setspecific(thread_key, self);
    }
    return self;
}
