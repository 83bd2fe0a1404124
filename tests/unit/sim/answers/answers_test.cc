// The simulated driver answers as the real one did. expected.txt is what
// //tests/unit/sim/answers:answers printed on a GPU.
#include "tests/unit/sim/answers/answers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/sim/cusim_kernel.h"

extern "C" CUresult cuSimKernelRegister(struct cusim_kernel *kernel);

namespace {

// Before the library reads its options: what driver 580 refuses, not all that the documentation
// lets it refuse.
const bool kMeasured = setenv("CUSIM_GRAPH_RULES", "measured", 1) == 0;

void Nothing(const unsigned *, const unsigned *, unsigned, void **) {}

const unsigned kOffsets[] = {0, 8};
const unsigned kSizes[] = {8, 4};
cusim_kernel touch{"touch", 1, kOffsets, kSizes, 0, Nothing, 0, 0, {0, 0, 0}, 0, nullptr};
cusim_kernel pair{"pair", 2, kOffsets, kSizes, 0, Nothing, 0, 0, {0, 0, 0}, 0, nullptr};

std::vector<std::string> Lines(std::istream &in) {
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
        if (!line.empty() && line[0] != '#')
            lines.push_back(line.compare(0, 2, "? ") == 0 ? line.substr(2) : line);
    return lines;
}

TEST(Answers, AreThoseOfARealDriver) {
    ASSERT_TRUE(kMeasured);
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
    std::ifstream want_text("tests/unit/sim/answers/expected.txt");
    std::vector<std::string> got = Lines(got_text), want = Lines(want_text);
    ASSERT_FALSE(want.empty());
    EXPECT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size() && i < got.size(); i++)
        EXPECT_EQ(want[i], got[i]) << "line " << i;
}

} // namespace
