// Steps that part in their first ops: what is withheld goes over from one piece to another.
// Whatever else happens meanwhile, what is issued is what was asked for, and no piece is named that
// is gone.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace {

#ifndef SEEDS
#define SEEDS 60
#endif

struct Known {
    std::set<const cus_piece *> pieces;
    const cus_plan *plan;
};

bool Has(const cus_piece *piece, const cus_node *node) {
    for (uint32_t i = 0; i < piece->n; i++)
        if (piece->nodes[i] == node)
            return true;
    return false;
}

void ExpectPieceOf(cus_node *node, void *context) {
    const auto *known = static_cast<const Known *>(context);
    if (!node->piece)
        return;
    ASSERT_TRUE(known->pieces.count(node->piece)) << "a node's piece is gone";
    ASSERT_TRUE(Has(node->piece, node));
}

// What the plan says of its pieces fits together.
void ExpectWhole(const cus_plan &plan) {
    Known known = {{}, &plan};
    const cus_piece *before = nullptr;
    for (const cus_piece *piece = plan.pieces; piece; before = piece, piece = piece->next) {
        ASSERT_EQ(piece->prev, before);
        known.pieces.insert(piece);
        ASSERT_LE(piece->lead, (uint32_t)CUS_LEAD_MAX);
        ASSERT_LT(piece->lead, piece->n);
        for (uint32_t i = 0; i < piece->n; i++) {
            const cus_node *node = piece->nodes[i];
            ASSERT_EQ(piece->places[i].kind, node->key.kind);
            ASSERT_FALSE(node->join);
            if (i) {
                ASSERT_EQ(node->key.parent, piece->nodes[i - 1]);
            }
            if (i && i >= piece->lead) {
                ASSERT_EQ(node->piece, piece) << "its own nodes are its own";
            }
        }
    }
    ASSERT_EQ(plan.oldest, before);
    ASSERT_EQ(plan.n_pieces, known.pieces.size());
    cus_tree_each(const_cast<cus_tree *>(&plan.tree), ExpectPieceOf, &known);
    for (uint64_t i = 0; plan.came && i < CUS_CAME; i++) {
        if (const cus_piece *piece = plan.came[i]) {
            ASSERT_TRUE(known.pieces.count(piece)) << "a piece that came is gone";
            ASSERT_EQ(piece->used % CUS_CAME, i);
        }
    }
    if (plan.piece) {
        ASSERT_TRUE(known.pieces.count(plan.piece));
    }
}

void ExpectFaithful(const Program &program) {
    ASSERT_EQ(program.asked.size(), program.issued.size());
    for (size_t i = 0; i < program.asked.size(); i++)
        ASSERT_EQ(program.asked[i], program.issued[i]) << "op " << i;
}

TEST(Parting, RandomStepsThatBeginAlikeAreFaithful) {
    unsigned turned = 0, graphs = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        std::mt19937 random(seed);
        Program program({1 + seed % 3, 2 + seed % 4, 4 + seed % 60, 0, 1 + seed % 4,
                         seed % 7 ? 100000u : 200u, CUS_MODE_PIECEWISE});
        program.Kind("h1")->type = seed % 5 ? CUS_OP_LAUNCH : CUS_OP_MEMSET;
        unsigned tails = 2 + seed % 5, heads = 1 + seed / 5 % 4, rare = seed % 4 ? 400 : 40;
        auto chance = [&](unsigned one_in) { return random() % one_in == 0; };
        for (int step = 0; step < 150; step++) {
            unsigned parts = 1 + random() % 3;
            for (unsigned part = 0; part < parts; part++) {
                unsigned tail = chance(12) ? random() % 40 : random() % tails;
                unsigned length = heads + 1 + tail % 9;
                for (unsigned i = 0; i < length; i++) {
                    const cus_piece *begun = program.plan.piece;
                    uint32_t withheld = cus_plan_withheld(&program.plan);
                    program.failing = chance(rare) ? "h0" : "";
                    program.Op(i < heads ? "h" + std::to_string(i)
                                         : "t" + std::to_string((tail >> (i - heads) / 2) % 40) +
                                               "_" + std::to_string(i % 5),
                               chance(20) ? random() % 5 : i, i, chance(30) ? 1 + random() % 3 : 1,
                               chance(200) ? 64 : 32);
                    turned += begun && program.plan.piece && program.plan.piece != begun &&
                              program.plan.n == withheld + 1;
                    if (chance(rare))
                        program.Break();
                    if (chance(rare) && program.plan.piece)
                        program.Flush((cus_cut)(random() % 5));
                    if (chance(rare))
                        cus_plan_memory(&program.plan, program.plan.memory_epoch + 1);
                    if (chance(rare))
                        cus_plan_drop_oldest(&program.plan);
                    if (chance(rare))
                        program.full = !program.full;
                    if (chance(rare) && !program.plan.piece)
                        cus_plan_drop_handle(
                            &program.plan,
                            program.Kind("h" + std::to_string(random() % 3))->handle);
                    if (chance(4 * rare) && !program.plan.piece)
                        cus_plan_rest(&program.plan);
                    if (chance(8 * rare) && !program.plan.piece)
                        cus_plan_shed(&program.plan, 2);
                    program.may_begin = !chance(50);
                }
                ExpectWhole(program.plan);
                if (HasFatalFailure())
                    FAIL() << "seed " << seed << " step " << step;
            }
            if (random() % 4)
                program.Sync();
        }
        if (program.plan.piece)
            program.Flush(CUS_CUT_OTHER);
        graphs += program.in_graphs;
        ExpectFaithful(program);
        if (HasFatalFailure())
            FAIL() << "seed " << seed;
    }
    EXPECT_GT(turned, SEEDS * 5u);
    EXPECT_GT(graphs, SEEDS * 300u);
    printf("turned %u, in graphs %u\n", turned, graphs);
}

} // namespace
