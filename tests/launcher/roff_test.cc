// Promise: no text becomes a macro or an escape of a manual page, however its lines are filled.
#include <gtest/gtest.h>

#include "tests/text.h"

extern "C" {
#include "tools/cli/roff.h"
}

namespace {

std::string Printed(const std::string &text) {
    testing::internal::CaptureStdout();
    roff_words(text.c_str());
    roff_lines(".SH no\n'as it is\n", 17);
    roff_end();
    fflush(stdout);
    return testing::internal::GetCapturedStdout();
}

TEST(Roff, TextIsNoMacroAndNoEscape) {
    EXPECT_EQ(Printed(".csv 'x' a\\b --set ~/.cache"),
              "\\&.csv \\(aqx\\(aq a\\eb \\-\\-set \\(ti/.cache\n"
              ".PP\n.RS 4\n.nf\n\\&.SH no\n\\&\\(aqas it is\n.fi\n.RE\n");
}

TEST(Roff, LinesStayShortWhereverAWordStands) {
    for (size_t before = 1; before < 120; before++) {
        std::string text = Printed(std::string(before, 'x') + " .csv .md a");
        text = text.substr(0, text.find(".PP\n"));
        EXPECT_EQ(text.find("\n.csv"), std::string::npos) << text;
        EXPECT_EQ(text.find("\n.md"), std::string::npos) << text;
        EXPECT_LE(text.find('\n'), std::max(before, size_t{80})) << text;
    }
}

} // namespace
