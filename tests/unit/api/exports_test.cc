// Promise: the library exports exactly what the table says, and needs only the C library.

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shim/api/api.h"

namespace {

std::vector<std::string> Output(const std::string &command) {
    std::vector<std::string> lines;
    FILE *pipe = popen((command + " " + getenv("API_LIBRARY")).c_str(), "r");
    if (!pipe)
        return lines;
    char line[1024];
    while (fgets(line, sizeof line, pipe))
        lines.push_back(line);
    EXPECT_EQ(pclose(pipe), 0) << command;
    return lines;
}

bool Sanitized() {
    const char *sanitizer = getenv("CUS_TEST_SANITIZER");
    return sanitizer && *sanitizer;
}

TEST(Exports, AreTheRowsThatAreHookedAndAFewMore) {
    std::set<std::string> wanted, found;
    for (const cus_api_row &row : cus_api_rows) {
        if (row.act != CUS_ACT_PASS)
            wanted.insert(row.name);
    }
    std::ifstream other(getenv("API_OTHER"));
    for (std::string line; std::getline(other, line);) {
        if (!line.empty() && line[0] != '#')
            wanted.insert(line);
    }
    for (const std::string &line : Output("nm -D --defined-only")) {
        std::istringstream words(line);
        std::string address, kind, name;
        words >> address >> kind >> name;
        if (islower(kind[0]))
            continue; // local, there for a relocation
        EXPECT_EQ(kind, "T") << line;
        // A version would keep the symbol from interposing.
        EXPECT_EQ(name.find('@'), std::string::npos) << line;
        found.insert(name);
    }
    EXPECT_EQ(found, wanted);
}

TEST(Exports, TheLibraryNeedsLibcOnly) {
    if (Sanitized())
        GTEST_SKIP() << "a sanitizer brings its own library";
    int needed = 0;
    for (const std::string &line : Output("readelf -dW")) {
        if (line.find("(NEEDED)") == std::string::npos)
            continue;
        // On AArch64 the C library keeps the value that guards stacks in its loader.
        if (line.find("[ld-linux-aarch64.so.1]") != std::string::npos)
            continue;
        needed++;
        EXPECT_NE(line.find("[libc.so.6]"), std::string::npos) << line;
    }
    EXPECT_EQ(needed, 1);
}

TEST(Exports, TheLibraryDoesTwoThingsWhenItIsLoaded) {
    if (Sanitized())
        GTEST_SKIP() << "a sanitizer brings constructors";
    for (const std::string &line : Output("readelf -dW")) {
        // Three entries: the compiler's own frame_dummy; note_early of base/file.c, which looks at
        // the descriptors; say_there of hook/handshake.c, which writes a line under the launcher.
        // On AArch64 the compiler has one more, which asks what atomics the processor has.
#if defined(__aarch64__)
        const char *entries = " 32 (bytes)";
#else
        const char *entries = " 24 (bytes)";
#endif
        if (line.find("(INIT_ARRAYSZ)") != std::string::npos) {
            EXPECT_NE(line.find(entries), std::string::npos) << line;
        }
        EXPECT_EQ(line.find("TEXTREL"), std::string::npos) << line;
    }
}

TEST(Exports, TheLibraryAsksForNoNewerCLibraryThanItMust) {
    if (Sanitized())
        GTEST_SKIP() << "a sanitizer has its own wishes";
    for (const std::string &line : Output("nm -D --undefined-only")) {
        size_t at = line.find("@GLIBC_2.");
        if (at != std::string::npos) {
            EXPECT_LE(atoi(line.c_str() + at + strlen("@GLIBC_2.")), 34) << line;
        }
    }
}

TEST(Exports, NothingInsideIsBoundToAnExport) {
    for (const std::string &line : Output("readelf -rW")) {
        for (const char *name : {" cu", " dlsym"}) {
            size_t at = line.find(name);
            // Relocations against cuda symbols would let another library take an inner call over.
            EXPECT_TRUE(at == std::string::npos || line[at + 3] == 's') << line;
        }
    }
}

} // namespace
