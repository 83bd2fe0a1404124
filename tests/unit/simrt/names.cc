// Promise: the stand-ins export only names that the real libraries have, under the same versions.
// Linking this program proves it; at run time the program checks that the stand-ins were bound.
#include <dlfcn.h>

#include <gtest/gtest.h>

extern "C" {
#define NAME(name) void name();
#include "tests/unit/simrt/names.inc"
#undef NAME
}

namespace {

const struct {
    const char *name;
    void (*address)();
} names[] = {
#define NAME(name) {#name, name},
#include "tests/unit/simrt/names.inc"
#undef NAME
};

TEST(Names, AreThoseOfTheRealLibraries) {
    unsigned count = 0;
    for (const auto &n : names) {
        Dl_info info = {};
        ASSERT_NE(dladdr((void *)n.address, &info), 0) << n.name;
        EXPECT_NE(strstr(info.dli_fname, "/sim/lib/"), nullptr) << n.name << " " << info.dli_fname;
        count++;
    }
    EXPECT_GT(count, 150u);
}

TEST(Names, TheDriverIsNotLinked) {
    EXPECT_EQ(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr);
}

} // namespace
