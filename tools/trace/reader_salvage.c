/*
 * Walks the blocks of a file that may be damaged. What does not match its checksum is left out and
 * counted. Of an unpacked block of records the definitions are taken all the same, behind those of
 * sound blocks, since all else in the file may refer to them. cusplice repair asks for it; all
 * other verbs refuse such a file. Time grows with the file's length, whatever is in it.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/reader_inside.h"

enum { SEARCH_TIMES = 8, FIRST_REFERRING = CST_RANGE };

struct walk {
    struct reading *r;
    const char *file;
    uint64_t bytes;
    uint64_t searched;               /* bytes whose checksum was computed in search of a block */
    const struct cst_record *before; /* the last event in front of what is damaged */
    struct list unchecked;           /* records of damaged blocks */
};

static const struct cst_block *at_byte(const struct walk *w, uint64_t at) {
    return (const struct cst_block *)(const void *)(w->file + at);
}

/* Does a block begin there, of which all bytes are there? */
static bool is_long_enough(const struct walk *w, uint64_t at) {
    uint64_t left = w->bytes - at;
    return left >= sizeof(struct cst_block) &&
           at_byte(w, at)->bytes <= left - sizeof(struct cst_block);
}

static uint64_t end_of(const struct walk *w, uint64_t at) {
    uint64_t end = at + sizeof(struct cst_block) + ((at_byte(w, at)->bytes + 7) & ~(uint64_t)7);
    return end < w->bytes ? end : w->bytes;
}

static bool is_whole(const struct walk *w, uint64_t at) {
    return is_long_enough(w, at) &&
           cst_block_matches(at_byte(w, at), w->file + at + sizeof(struct cst_block));
}

/* Might it be one? Most bytes of a file are told apart by this alone. */
static bool is_likely(const struct walk *w, uint64_t at) {
    const struct cst_block *block = at_byte(w, at);
    return is_long_enough(w, at) && block->type >= CST_BLOCK_FACTS &&
           block->type <= CST_BLOCK_DATA && !(block->flags & ~(uint32_t)CST_BLOCK_ZSTD) &&
           block->raw <= CST_BLOCK_MAX && (block->flags || block->raw == block->bytes);
}

/* The same in search of a block, which may cost so much in all. */
static bool is_found(struct walk *w, uint64_t at) {
    if (!is_likely(w, at) || w->searched / SEARCH_TIMES > w->bytes)
        return false;
    w->searched += at_byte(w, at)->bytes;
    return is_whole(w, at);
}

/* Where the next sound block begins; the file's length: nowhere. */
static uint64_t next_whole(struct walk *w, uint64_t at) {
    if (is_likely(w, at)) {
        uint64_t end = end_of(w, at);
        w->searched += at_byte(w, at)->bytes; /* it was found to be damaged */
        if (end == w->bytes || is_found(w, end))
            return end;
    }
    for (at += 8; at + sizeof(struct cst_block) <= w->bytes; at += 8)
        if (is_found(w, at))
            return at;
    return w->bytes;
}

/* The records of a damaged block, as far as one follows another: definitions are taken, `events`
 * too where its bytes are only too few. All others are counted. Returns how many bytes they have;
 * UINT64_MAX: no memory. */
static uint64_t take_records(struct walk *w, const char *payload, uint64_t bytes, bool events,
                             struct cst_lost *lost) {
    uint64_t at = 0;
    size_t length;
    for (; at < bytes; at += length) {
        const struct cst_record *record = (const struct cst_record *)(const void *)(payload + at);
        if (!cst_record_sound(record, bytes - at, &length))
            break;
        if (record->type < FIRST_REFERRING || (events && record->type < CST_MODULE)) {
            if (!cst_push(w->r, &w->unchecked, record))
                return UINT64_MAX;
        } else {
            lost->records++;
            lost->ops += record->type == CST_OP;
        }
    }
    return at;
}

/* A record that says in the trace what is missing there. */
static struct cst_lost *make_lost(struct walk *w) {
    struct cst_lost *lost = (struct cst_lost *)(void *)cst_keep(w->r->memory, sizeof *lost);
    if (!lost) {
        cst_no_memory(w->r);
        return NULL;
    }
    memset(lost, 0, sizeof *lost);
    lost->head.type = CST_LOST;
    lost->head.flags = CST_LOST_DAMAGE;
    lost->head.words = sizeof *lost / 8;
    lost->head.thread = w->before ? w->before->thread : 0;
    lost->head.ns = w->before ? w->before->ns : 0;
    return lost;
}

/* What is damaged, from `at` to `end`. A block whose end is missing is taken as far as it goes. */
static bool leave_out(struct walk *w, uint64_t at, uint64_t end) {
    struct cst_damage *damage = &w->r->trace->damage;
    const struct cst_block *block = at_byte(w, at);
    uint64_t left = end - at, taken = 0;
    bool head = left > sizeof *block, cut = head && end == w->bytes && !is_long_enough(w, at);
    struct cst_lost *lost = make_lost(w);
    if (!lost)
        return false;
    if (head && block->type == CST_BLOCK_RECORDS && !block->flags)
        taken = take_records(w, w->file + at + sizeof *block, left - sizeof *block, cut, lost);
    if (taken == UINT64_MAX)
        return false;
    lost->records += !lost->records; /* at least one: nobody knows */
    damage->places++;
    damage->bytes += cut ? left - taken : left;
    damage->records += lost->records;
    damage->ops += lost->ops;
    return cst_push(w->r, &w->r->events, lost);
}

/* A block that matches its checksum. */
static bool read_whole(struct walk *w, uint64_t at) {
    struct reading *r = w->r;
    size_t events = r->events.n;
    bool read = cst_read_block(r, at_byte(w, at), w->file + at + sizeof(struct cst_block), at);
    if (!read && !r->refused)
        read = leave_out(w, at, at + sizeof(struct cst_block)); /* all that was sound was taken */
    if (r->events.n > events)
        w->before = r->events.at[r->events.n - 1];
    return read;
}

static bool walk_blocks(struct walk *w) {
    struct cst_trace *trace = w->r->trace;
    for (uint64_t at = sizeof(struct cst_file), end; at < w->bytes && !trace->closed; at = end) {
        bool whole = is_whole(w, at);
        end = whole ? end_of(w, at) : next_whole(w, at);
        if (whole ? !read_whole(w, at) : !leave_out(w, at, end))
            return false;
        trace->closed = whole && at_byte(w, at)->type == CST_BLOCK_END;
    }
    return true;
}

/* Behind all others: where two records define an id, the first one counts. */
static bool hand_in(struct walk *w) {
    bool room = true;
    for (size_t i = 0; room && i < w->unchecked.n; i++) {
        const struct cst_record *record = w->unchecked.at[i];
        struct list *list = cst_list_of(w->r, record->type);
        room = !list || cst_push(w->r, list, record);
    }
    w->r->trace->damage.unchecked = w->unchecked.n;
    return room;
}

bool cst_salvage(struct reading *r, const char *file, uint64_t bytes) {
    struct walk w = {.r = r, .file = file, .bytes = bytes};
    bool done = walk_blocks(&w) && hand_in(&w);
    free(w.unchecked.at);
    return done;
}

bool cst_salvage_begins(const char *file, uint64_t bytes) {
    const struct walk w = {.file = file, .bytes = bytes};
    return is_likely(&w, sizeof(struct cst_file)) && is_whole(&w, sizeof(struct cst_file));
}

/* ---- what says that something was left out ---- */

static uint32_t any_thread(const struct cst_trace *trace) {
    uint32_t any = 0;
    while (any < trace->n_threads && !trace->threads[any])
        any++;
    return any;
}

/* A copy of `of` in the trace's memory, with another thread and time: the file itself may not be
 * written to. NULL without memory. */
static struct cst_lost *lost_at(struct reading *r, const struct cst_lost *of, uint64_t ns) {
    struct cst_lost *lost = (struct cst_lost *)(void *)cst_keep(r->memory, sizeof *lost);
    if (!lost) {
        cst_no_memory(r);
        return NULL;
    }
    *lost = *of;
    lost->head.thread = any_thread(r->trace);
    lost->head.ns = ns;
    return lost;
}

bool cst_tell_lost(struct reading *r, uint64_t records, uint64_t ops) {
    if (!(records || ops) || !r->events.n)
        return true;
    const struct cst_record *last = r->events.at[r->events.n - 1];
    const struct cst_lost all = {
        .head = {.type = CST_LOST, .flags = CST_LOST_DAMAGE, .words = sizeof all / 8},
        .records = records,
        .ops = ops};
    struct cst_lost *lost = lost_at(r, &all, last->ns);
    return lost && cst_push(r, &r->events, lost);
}

bool cst_place_lost(struct reading *r) {
    size_t n = 0;
    for (; n < r->events.n; n++) {
        const struct cst_record *record = r->events.at[n];
        if (record->type != CST_LOST || record->flags != CST_LOST_DAMAGE || record->thread ||
            record->ns)
            break;
    }
    uint64_t ns = n < r->events.n ? ((const struct cst_record *)r->events.at[n])->ns : 0;
    for (size_t i = 0; i < n; i++)
        if (!(r->events.at[i] = lost_at(r, r->events.at[i], ns)))
            return false;
    return true;
}
