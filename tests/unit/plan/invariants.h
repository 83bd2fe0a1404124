// What is true of a plan between any two calls: its lists, counts and indexes agree with each
// other.
#ifndef CUSPLICE_TESTS_UNIT_PLAN_INVARIANTS_H
#define CUSPLICE_TESTS_UNIT_PLAN_INVARIANTS_H

#include <algorithm>
#include <set>
#include <string>

extern "C" {
#include "shim/plan/state.h"
#include "shim/plan/variants.h"
}

// "" if `plan` keeps the invariants, else the first one that is broken.
class Invariants {
  public:
    static std::string Broken(const cus_plan *plan) {
        Invariants check(plan);
        check.All();
        return check.broken_;
    }

  private:
    explicit Invariants(const cus_plan *plan) : plan_(plan) {}

    void Is(bool holds, const char *what) {
        if (!holds && broken_.empty())
            broken_ = what;
    }

    void All() {
        Nodes();
        Segments();
        if (!broken_.empty())
            return; // the rest follows pointers that may be wrong
        Heads();
        for (const cus_segment *segment : segments_)
            Variants(segment);
        Orders();
        Deferred();
    }

    static void Count(cus_node *node, void *self) {
        static_cast<Invariants *>(self)->nodes_.insert(node);
    }

    void Nodes() {
        cus_tree_each(const_cast<cus_tree *>(&plan_->tree), Count, this);
        Is(nodes_.size() == plan_->tree.n_nodes, "n_nodes counts the nodes");
        nodes_.insert(&plan_->tree.root);
        Is(nodes_.count(plan_->cur), "the path is at a node of the tree");
        for (const cus_node *node : nodes_) {
            Is(!node->marked, "marks are cleared");
            Is(!node->key.parent || nodes_.count(node->key.parent), "a parent is in the tree");
            Is(!node->join || nodes_.count(node->join), "an alias leads to a node of the tree");
            Is(!node->expect || nodes_.count(node->expect), "what is expected is in the tree");
        }
    }

    static bool Has(const cus_segment *segment, const cus_node *node) {
        return std::find(segment->nodes, segment->nodes + segment->n, node) !=
               segment->nodes + segment->n;
    }

    void Segments() {
        uint32_t waits = 0, stale = 0;
        const cus_segment *before = nullptr;
        for (const cus_segment *segment = plan_->view.segments; segment;
             before = segment, segment = segment->next) {
            Is(segment->prev == before, "segments are linked both ways");
            Is(segments_.insert(segment).second, "a segment is in the list once");
            waits += segment->waits;
            stale += segment->stale;
            Is(segment->n >= 2 && segment->lead < segment->n, "a segment has ops of its own");
            Is(segment->lead <= CUS_PREFIX_MAX, "a few ops lead at most");
            for (uint32_t i = 0; i < segment->n; i++) {
                const cus_node *node = segment->nodes[i];
                Is(nodes_.count(node), "a segment's nodes are in the tree");
                Is(segment->places[i].kind == node->key.kind, "places have its kinds");
                Is(!node->join, "an alias is in no segment");
                Is(!i || node->key.parent == segment->nodes[i - 1], "it is a path");
            }
            if (!broken_.empty())
                return;
            // The first one may lead to another segment, or to none if that one was dropped.
            for (uint32_t i = segment->lead; i < segment->n; i++) {
                const cus_segment *of = segment->nodes[i]->segment;
                Is(of == segment || !i, "a segment's own nodes lead to it");
            }
        }
        Is(plan_->oldest == before, "the oldest is the last of the list");
        Is(plan_->view.n_segments == segments_.size(), "n_segments counts the segments");
        Is(plan_->n_waiting == waits, "n_waiting counts those that wait");
        Is(plan_->n_stale == stale, "n_stale counts the stale ones");
        for (const cus_node *node : nodes_)
            Is(!node->segment || (segments_.count(node->segment) && Has(node->segment, node)),
               "a node leads to a segment that has it");
    }

    static uint64_t HashOfHead(const cus_segment *segment) {
        const cus_values *values = cus_image_op(segment->newest->image, segment, 0);
        cus_op op = {};
        op.kind = segment->places[0].kind;
        op.flat = values->params;
        for (int i = 0; i < CUS_DIMS; i++)
            op.dims[i] = values->dims[i];
        return cus_op_hash(&op);
    }

    void Heads() {
        size_t indexed = 0;
        for (const cus_segment *segment : segments_) {
            indexed += segment->indexed;
            Is(!segment->indexed || segment->hashed, "what is indexed has a hash");
            const cus_segment *found = nullptr;
            HASH_FIND(hh, plan_->heads, &segment->head_hash, sizeof segment->head_hash, found);
            Is(!segment->indexed || found == segment, "what is indexed is found by its first op");
            // Where a first op is new each time, it is not looked at.
            if (segment->hashed && segment->n_variants && !segment->otherwise)
                Is(segment->head_hash == HashOfHead(segment), "the hash is of the first op");
        }
        Is(HASH_COUNT(plan_->heads) == indexed, "the index has the indexed ones alone");
    }

    template <class Next>
    void Index(const cus_segment *segment, const std::set<const cus_variant *> &variants,
               const cus_variant *first, Next next) {
        for (const cus_variant *each = first; each; each = next(each))
            Is(variants.count(each), "no dropped variant is found");
        Is(!first || segment->n_numbered > CUS_VARIANTS_FEW, "a few variants are searched");
    }

    void Variants(const cus_segment *segment) {
        std::set<const cus_variant *> variants;
        const cus_variant *newer = nullptr;
        for (const cus_variant *variant = segment->newest; variant;
             newer = variant, variant = variant->older) {
            Is(variants.insert(variant).second, "a variant is in the list once");
            Is(variant->newer == newer, "variants are linked both ways");
            Is(variant->segment == segment, "a variant knows its segment");
            Is(variant->exec, "a variant has a graph");
            Is(variant->fired <= segment->fired, "a variant was launched when its segment was");
            Is(variant->used <= plan_->clock, "nothing was launched in the future");
            Is(!newer || variant->used <= newer->used, "variants are in the order of launches");
            if (!broken_.empty())
                return;
        }
        Is(segment->oldest == newer, "the oldest variant is the last of the list");
        Is(segment->n_variants == variants.size(), "n_variants counts the variants");
        Is(segment->n_variants <= plan_->limits.variants, "there are not too many variants");
        Is(!segment->guest || variants.count(segment->guest), "the guest is a variant");
        Index(segment, variants, segment->by_shape, [](const cus_variant *v) {
            return static_cast<const cus_variant *>(v->by_shape.next);
        });
        Index(segment, variants, segment->by_place, [](const cus_variant *v) {
            return static_cast<const cus_variant *>(v->by_place.next);
        });
        Index(segment, variants, segment->by_values, [](const cus_variant *v) {
            return static_cast<const cus_variant *>(v->by_values.next);
        });
        if (segment->n_variants > CUS_VARIANTS_FEW)
            for (const cus_variant *variant : variants)
                Is(variant->by_shape.tbl && cus_variants_of_shape(segment, variant->own),
                   "each of many is found by its shapes");
        all_.insert(variants.begin(), variants.end());
    }

    // What was launched when.
    void Orders() {
        Is(!plan_->launched || all_.count(plan_->launched), "what was launched last is there");
        for (const cus_variant *variant : all_) {
            Is(!variant->before || all_.count(variant->before), "what came before is there");
            Is(!variant->behind || all_.count(variant->behind), "what came behind is there");
            if (!broken_.empty())
                return;
            Is(!variant->before || variant->before->behind == variant, "both know of each other");
            Is(!variant->behind || variant->behind->before == variant, "both know of each other");
        }
        for (size_t i = 0; plan_->history && i < CUS_HISTORY; i++)
            if (const cus_segment *segment = plan_->history[i])
                Is(segments_.count(segment) && segment->used % CUS_HISTORY == i,
                   "history has segments where they were launched last");
    }

    void Deferred() {
        const cus_plan_view &view = plan_->view;
        const cus_segment *segment = view.segment;
        Is(view.at != nullptr, "something is expected, or nothing");
        if (!segment) {
            Is(view.at == &cus_expect_nothing, "nothing is expected where nothing is deferred");
            return;
        }
        Is(segments_.count(segment), "the deferred segment is in the list");
        Is(view.n < segment->n, "a complete segment is launched");
        for (uint32_t i = view.n; i < segment->n; i++)
            Is(!(view.dirty[i / 64] >> i % 64 & 1), "what did not come is not dirty");
        Is(!view.predicted || view.predicted->segment == segment, "a variant of it is predicted");
    }

    const cus_plan *plan_;
    std::string broken_;
    std::set<const cus_node *> nodes_;
    std::set<const cus_segment *> segments_;
    std::set<const cus_variant *> all_;
};

#endif
