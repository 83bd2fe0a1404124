/*
 * Copies a trace block by block, compressing those that get shorter, and renames the copy.
 * verb_record.c calls it. It never looks into a block.
 */
#include "tools/trace/pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "shim/trace/file.h"
#include "tools/trace/budget.h"

enum { LEVEL = 1 }; /* what a recording leaves is large, and somebody waits */

struct packing {
    FILE *in;
    struct cst_out out;
    uint8_t *raw, *frame;
    size_t room; /* of raw */
};

/* 1: there was one, 0: there is no more, -1: it is not as it should be, or there is no memory. */
static int pack_block(struct packing *p) {
    struct cst_block block;
    size_t n = fread(&block, 1, sizeof block, p->in);
    if (n == 0)
        return 0;
    if (n != sizeof block || block.bytes > ZSTD_compressBound(CST_BLOCK_MAX))
        return -1;
    size_t padded = (block.bytes + 7) & ~(size_t)7, bound = ZSTD_compressBound(padded);
    if (padded > p->room) {
        free(p->raw);
        free(p->frame);
        p->raw = malloc(padded);
        p->frame = malloc(bound);
        p->room = p->raw && p->frame ? padded : 0;
    }
    if (padded > p->room || fread(p->raw, 1, padded, p->in) != padded)
        return -1;
    if (block.type == CST_BLOCK_END)
        return 1; /* whoever closes the file writes it */
    size_t packed = block.flags || !block.bytes
                        ? block.bytes
                        : ZSTD_compress(p->frame, bound, p->raw, block.bytes, LEVEL);
    if (!ZSTD_isError(packed) && packed < block.bytes)
        cst_out_block(&p->out, block.type, CST_BLOCK_ZSTD, p->frame, packed, block.bytes);
    else
        cst_out_block(&p->out, block.type, block.flags, p->raw, block.bytes, block.raw);
    return p->out.error ? -1 : 1;
}

static bool pack(struct packing *p, const char *path, char *error, size_t bytes) {
    struct cst_file head;
    char beside[CST_PATH];
    snprintf(beside, sizeof beside, "%s.packed", path);
    int why = strlen(path) + 8 < sizeof beside ? cst_out_open(&p->out, beside) : ENAMETOOLONG;
    if (why) {
        snprintf(error, bytes, "%s: %s", beside, strerror(why));
        return false;
    }
    int more = fread(&head, 1, sizeof head, p->in) == sizeof head &&
                       memcmp(head.magic, CST_MAGIC, sizeof head.magic) == 0
                   ? 1
                   : -1;
    while (more > 0)
        more = pack_block(p);
    why = p->out.error;
    if (more < 0) {
        cst_out_abandon(&p->out);
        snprintf(error, bytes, "%s: %s", path, why ? strerror(why) : "is not a whole trace");
        return false;
    }
    why = cst_out_close(&p->out);
    if (!why && rename(beside, path) != 0)
        why = errno;
    if (why) {
        unlink(p->out.partial);
        unlink(beside);
        snprintf(error, bytes, "%s: %s", beside, strerror(why));
    }
    return !why;
}

bool pack_file(const char *path, char *error, size_t bytes) {
    struct packing p = {.in = budget_file(path)};
    if (!p.in) {
        snprintf(error, bytes, "%s: %s", path,
                 errno == EINVAL ? "it is no regular file" : strerror(errno));
        return false;
    }
    bool packed = pack(&p, path, error, bytes);
    fclose(p.in);
    free(p.raw);
    free(p.frame);
    return packed;
}
