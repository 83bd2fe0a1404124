// Promise: every token of every sequence is in exactly one step, in order. Prompts come in chunks,
// and the kind of a step follows from its rows.
#include "harness/decode/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

// A schedule and the memory that it borrows.
class Steps {
  public:
    Steps(int batch, int prompt_len, int tokens, int prefill, bool staggered)
        : next_(static_cast<size_t>(batch), 0) {
        schedule_ = {};
        schedule_.batch = batch;
        schedule_.prompt_len = prompt_len;
        schedule_.len = prompt_len - 1 + tokens;
        schedule_.prefill = prefill;
        schedule_.staggered = staggered;
        schedule_.next = next_.data();
        rows_.resize(static_cast<size_t>(max_rows()));
        step_ = {};
        step_.rows = rows_.data();
    }

    Steps(const std::vector<int> &groups, int batch, int prompt_len, int tokens, int prefill)
        : Steps(batch, prompt_len, tokens, prefill, false) {
        groups_ = groups;
        schedule_.groups = groups_.data();
        schedule_.n_groups = static_cast<int>(groups_.size());
    }

    int max_rows() { return decode_schedule_max_rows(&schedule_); }
    bool next() { return decode_schedule_next(&schedule_, &step_) != 0; }
    const decode_step &step() const { return step_; }
    long long steps(decode_kind kind) const { return schedule_.steps[kind]; }

    // The next step, for example "mixed 0:4 1:0 1:1": sequence and position of each row. "" behind
    // the last. '=' if it is in step.
    std::string text() {
        static const char *const kind[] = {"decode", "prefill", "mixed"};
        if (!next()) {
            return "";
        }
        std::string text = std::string(kind[step_.kind]) + (step_.in_step ? " =" : "");
        for (int i = 0; i < step_.n_rows; i++) {
            text +=
                " " + std::to_string(step_.rows[i].seq) + ":" + std::to_string(step_.rows[i].pos);
        }
        return text;
    }

    std::vector<std::string> all() {
        std::vector<std::string> all;
        for (std::string one = text(); !one.empty(); one = text()) {
            all.push_back(one);
        }
        return all;
    }

  private:
    decode_schedule schedule_;
    decode_step step_;
    std::vector<int> next_, groups_;
    std::vector<decode_row> rows_;
};

using Texts = std::vector<std::string>;

TEST(Schedule, TakesOneTokenOfEachSequence) {
    EXPECT_EQ(Steps(2, 2, 2, 1, false).all(),
              (Texts{"decode = 0:0 1:0", "decode = 0:1 1:1", "decode = 0:2 1:2"}));
    EXPECT_EQ(Steps(1, 1, 1, 9, true).all(), Texts{"decode = 0:0"});
}

TEST(Schedule, TakesAPromptInChunks) {
    // A chunk of one row is a decode step: nothing tells it from one.
    EXPECT_EQ(Steps(2, 4, 2, 3, false).all(),
              (Texts{"prefill 0:0 0:1 0:2 1:0 1:1 1:2", "decode = 0:3 1:3", "decode = 0:4 1:4"}));
    EXPECT_EQ(Steps(1, 4, 1, 2, true).all(), (Texts{"prefill 0:0 0:1", "prefill 0:2 0:3"}));
}

TEST(Schedule, StartsOneSequenceAfterTheOther) {
    EXPECT_EQ(Steps(3, 3, 4, 2, true).all(),
              (Texts{"prefill 0:0 0:1", "decode 0:2", "mixed 0:3 1:0 1:1", "decode 0:4 1:2",
                     "mixed 0:5 1:3 2:0 2:1", "decode 1:4 2:2", "decode 1:5 2:3", "decode 2:4",
                     "decode 2:5"}));
}

TEST(Schedule, GoesOnToTheNextPromptWhereTheSequencesBeforeHaveEnded) {
    EXPECT_EQ(Steps(2, 4, 1, 2, true).all(),
              (Texts{"prefill 0:0 0:1", "prefill 0:2 0:3", "prefill 1:0 1:1", "prefill 1:2 1:3"}));
}

TEST(Schedule, GroupsTakeTurns) {
    EXPECT_EQ(Steps({1, 2}, 3, 1, 2, 1).all(),
              (Texts{"decode 0:0", "decode 1:0 2:0", "decode 0:1", "decode 1:1 2:1"}));
    EXPECT_EQ(Steps({2, 1}, 3, 3, 1, 2).all(), (Texts{"prefill 0:0 0:1 1:0 1:1", "prefill 2:0 2:1",
                                                      "decode 0:2 1:2", "decode 2:2"}));
    EXPECT_EQ(Steps({1, 4, 2}, 7, 3, 1, 2).max_rows(), 8);
    EXPECT_EQ(Steps(std::vector<int>{3}, 3, 1, 2, 1).all(), Steps(3, 1, 2, 1, false).all());
}

TEST(Schedule, HasEveryTokenOnceInOrderAndCountsSteps) {
    for (int batch : {1, 2, 5}) {
        for (int prompt_len : {1, 2, 9}) {
            for (int tokens : {1, 3, 20}) {
                for (int prefill : {1, 2, 4, 9, 64}) {
                    for (bool staggered : {false, true}) {
                        Steps steps(batch, prompt_len, tokens, prefill, staggered);
                        std::vector<int> next(static_cast<size_t>(batch), 0);
                        long long count = 0, kinds = 0;
                        int most = 0;
                        while (steps.next()) {
                            const decode_step &step = steps.step();
                            most = std::max(most, step.n_rows);
                            for (int i = 0; i < step.n_rows; i++) {
                                ASSERT_EQ(step.rows[i].pos,
                                          next[static_cast<size_t>(step.rows[i].seq)]++);
                            }
                            count++;
                        }
                        for (int taken : next) {
                            ASSERT_EQ(taken, prompt_len - 1 + tokens);
                        }
                        for (decode_kind kind :
                             {DECODE_KIND_DECODE, DECODE_KIND_PREFILL, DECODE_KIND_MIXED}) {
                            kinds += steps.steps(kind);
                        }
                        EXPECT_EQ(kinds, count);
                        EXPECT_LE(most, steps.max_rows());
                        if (!staggered) {
                            EXPECT_EQ(most, steps.max_rows());
                        }
                    }
                }
            }
        }
    }
}

} // namespace
