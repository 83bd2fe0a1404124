// Promise: the simulated driver answers as the real one did (h200.txt). The environment variable
// ANSWERS_DIFFERENCES names a file of allowed differences, in order: "- " marks an answer of the
// H200, "+ " the simulator's.
#include "tests/unit/sim/answers/answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/sim/cusim_kernel.h"

extern "C" CUresult cuSimKernelRegister(struct cusim_kernel *kernel);

namespace {

void Nothing(const unsigned *, const unsigned *, unsigned, void **) {}

const unsigned kOffsets[] = {0, 8};
const unsigned kSizes[] = {8, 4};
cusim_kernel touch{"touch", 1, kOffsets,  kSizes,    0, Nothing,
                   0,       0, {0, 0, 0}, {0, 0, 0}, 0, nullptr};
cusim_kernel pair{"pair", 2, kOffsets, kSizes, 0, Nothing, 0, 0, {0, 0, 0}, {0, 0, 0}, 0, nullptr};

using Text = std::vector<std::string>;

Text Lines(std::istream &in) {
    Text lines;
    for (std::string line; std::getline(in, line);)
        if (!line.empty() && line[0] != '#')
            lines.push_back(line);
    return lines;
}

Text File(const std::string &path) {
    std::ifstream in(path);
    return Lines(in);
}

// Puts the simulator's answers where it is known to differ. A difference that is none, or whose
// place is not found, is an error: the list must not go stale.
void Apply(const Text &differences, Text *want) {
    auto at = want->begin();
    ASSERT_FALSE(differences.empty());
    ASSERT_EQ(0u, differences.size() % 2);
    for (size_t i = 0; i < differences.size(); i += 2) {
        const std::string &from = differences[i], &to = differences[i + 1];
        ASSERT_EQ("- ", from.substr(0, 2));
        ASSERT_EQ("+ ", to.substr(0, 2));
        ASSERT_NE(from.substr(2), to.substr(2));
        at = std::find(at, want->end(), from.substr(2));
        ASSERT_NE(want->end(), at) << "not an answer, or out of order: " << from;
        *at++ = to.substr(2);
    }
}

TEST(Answers, AreThoseOfARealDriver) {
    cuSimKernelRegister(&touch);
    cuSimKernelRegister(&pair);
    char *text = nullptr;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ASSERT_NE(nullptr, out);
    ask_all(out);
    fclose(out);
    std::istringstream got_text(std::string(text, bytes));
    free(text);
    Text got = Lines(got_text), want = File("tests/unit/sim/answers/h200.txt");
    ASSERT_FALSE(want.empty());
    if (const char *differences = getenv("ANSWERS_DIFFERENCES")) {
        ASSERT_NO_FATAL_FAILURE(Apply(File(differences), &want));
    }
    EXPECT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size() && i < got.size(); i++)
        EXPECT_EQ(want[i], got[i]) << "answer " << i + 1;
}

} // namespace
