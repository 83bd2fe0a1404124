// Promise: with shim/base/forbid.h, names that the hot path must not use do not compile, and
// allowed names do. The test calls the compiler.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/base/captured.h"

namespace {

bool Compiles(const std::string &body, std::string *said = nullptr) {
    std::string path = WriteFile(TempPath("snippet.c"), "#include \"shim/base/uthash.h\"\n"
                                                        "#include \"shim/base/log.h\"\n"
                                                        "#include \"shim/base/forbid.h\"\n"
                                                        "void f(void *x);\n"
                                                        "void f(void *x) { (void)x; " +
                                                            body + "; }\n");
    std::string out = TempPath("gcc.txt");
    int status = system(
        ("gcc -std=gnu11 -Wall -Werror -fsyntax-only -I. " + path + " > " + out + " 2>&1").c_str());
    if (said)
        *said = ReadFile(out);
    return status == 0;
}

TEST(Forbid, WhatIsAllowedCompiles) {
    std::string said;
    EXPECT_TRUE(Compiles(
        "cus_log(CUS_WARN, \"a\", \"b\"); memset(x, 0, 1); if (write(2, x, 1)) x = 0", &said))
        << said;
}

TEST(Forbid, WhatIsForbiddenDoesNot) {
    for (const char *body : {"printf(\"x\")",
                             "fprintf(stderr, \"x\")",
                             "fputs(x, stdout)",
                             "puts(x)",
                             "malloc(1)",
                             "calloc(1, 1)",
                             "realloc(x, 1)",
                             "free(x)",
                             "strdup(x)",
                             "alloca(1)",
                             "abort()",
                             "exit(1)",
                             "_exit(1)",
                             "assert(x)",
                             "setenv(\"a\", \"b\", 1)",
                             "getenv(\"a\")",
                             "fork()",
                             "system(\"a\")",
                             "signal(1, 0)",
                             "sleep(1)",
                             "fopen(\"a\", \"r\")",
                             "openat(1, \"a\", 0)"}) {
        std::string said;
        EXPECT_FALSE(Compiles(body, &said)) << body;
        EXPECT_NE(said.find("poisoned"), std::string::npos) << body << ": " << said;
    }
}

} // namespace
