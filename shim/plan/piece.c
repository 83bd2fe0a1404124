/*
 * Forming pieces from warm paths. Runs under the engine's lock, while a path is being learned:
 * never in steady replay. Never calls the driver.
 */
#include "shim/plan/piece.h"

#include <string.h>

#include "shim/base/mem.h"

static bool qualifies(const struct cus_node *node, uint32_t warmup) {
    const struct cus_kind *kind = node->key.kind;
    return !node->piece && node->visits >= warmup && node->visits >= node->retry_at &&
           kind->deferrable && kind->policy == CUS_POLICY_GRAPH;
}

struct cus_piece *cus_piece_form(struct cus_node *head, uint32_t max, uint32_t warmup) {
    struct cus_node *nodes[CUS_PIECE_MAX];
    uint32_t n = 0, bytes = 0;
    if (max > CUS_PIECE_MAX)
        max = CUS_PIECE_MAX;
    for (struct cus_node *node = head; node && !node->join && qualifies(node, warmup);
         node = node->expect) {
        /* A launch that overlaps the one before it (PDL) loses that overlap behind a cut (HAZARDS
         * A5): it is taken in where there is room. */
        if (n == CUS_PIECE_MAX || (n >= max && !node->key.kind->pdl))
            break;
        nodes[n++] = node;
        bytes += cus_held_bytes(node->key.kind);
        if (node->boundary || node->loop_end)
            break;
    }
    if (n < 2)
        return NULL;
    struct cus_piece *piece = cus_mem_alloc(sizeof *piece);
    uint8_t *asked = cus_mem_alloc(bytes);
    if (!piece || !asked) {
        cus_mem_free(piece);
        cus_mem_free(asked);
        return NULL;
    }
    piece->asked = asked;
    piece->n = n;
    piece->image_bytes = bytes;
    for (uint32_t i = 0, at = 0; i < n; i++) {
        piece->nodes[i] = nodes[i];
        piece->offset[i] = at;
        at += cus_held_bytes(nodes[i]->key.kind);
        nodes[i]->piece = piece;
    }
    return piece;
}

void cus_piece_free(struct cus_piece *piece) {
    for (uint32_t i = 0; i < piece->n; i++)
        piece->nodes[i]->piece = NULL;
    cus_mem_free(piece->asked);
    cus_mem_free(piece);
}

struct cus_variant *cus_variant_new(const struct cus_piece *piece) {
    return cus_mem_alloc(sizeof(struct cus_variant) + piece->image_bytes);
}
