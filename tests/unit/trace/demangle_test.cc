// Promise: names are demangled as the C++ runtime does it, within bounded time.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tools/trace/demangle.h"

namespace {

std::string Demangled(const std::string &mangled) {
    char *name = demangle(mangled.c_str());
    std::string text = name ? name : "(none)";
    free(name);
    return text;
}

// A<int, int>, then each part a pair of the one before: 2^parts times as long.
std::string Doubled(int parts) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string name = "_Z1f1AIiiE";
    for (int i = 0; i < parts; i++)
        name += std::string("S_IS") + digits[i] + "_S" + digits[i] + "_E";
    return name;
}

TEST(Demangle, NamesWithFewAndWithManyReferences) {
    EXPECT_EQ(Demangled("_Z1kIfEvPT_"), "void k<float>(float*)");
    EXPECT_EQ(Demangled("_Z1kPfS_S_S_S_S_S_S_S_S_S_"),
              "k(float*, float*, float*, float*, float*, float*, float*, float*, float*, float*, "
              "float*)");
    EXPECT_EQ(Demangled("_Z1kIJifEEvDpT_"), "void k<int, float>(int, float)");
    EXPECT_EQ(Demangled(Doubled(2)),
              "f(A<int, int>, A<A<int, int>, A<int, int> >, "
              "A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > >)");
}

TEST(Demangle, WhatIsNoneOrTooLongIsLeft) {
    EXPECT_EQ(Demangled(""), "(none)");
    EXPECT_EQ(Demangled("_Z"), "(none)");
    EXPECT_EQ(Demangled("f"), "(none)"); // not "float"
    EXPECT_EQ(Demangled("_Zx"), "(none)");
    EXPECT_EQ(Demangled("_Z1fS_S_S_S_S_S_S_S_S_S_S_"), "(none)");
    EXPECT_EQ(Demangled("_Z" + std::to_string(DEMANGLE_FROM) + std::string(DEMANGLE_FROM, 'x')),
              "(none)");
}

// The C++ runtime of Debian 12 never comes back from the second one.
TEST(Demangle, OneThatWouldTakeForEverIsLeft) {
    EXPECT_EQ(Demangled("_Z1fIXplLi1ELi2EEEvv"), "void f<(1)+(2)>()");
    EXPECT_EQ(Demangled("_Z3aadIXsraDsfD"), "(none)");
    EXPECT_EQ(Demangled("_Z1fIXplLi1ELi2EEEvv"), "void f<(1)+(2)>()");
}

TEST(Demangle, OneThatWouldTakeGigabytesIsLeftAndTheOthersGoOn) {
    for (int parts : {12, 16, 20, 24, 30, 34})
        EXPECT_EQ(Demangled(Doubled(parts)), "(none)") << parts;
    EXPECT_EQ(Demangled("_Z1kIfEvPT_"), "void k<float>(float*)");
    // After so many that ended a child there is none any more, whatever the name.
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(Demangled(Doubled(30)), "(none)");
}

} // namespace
