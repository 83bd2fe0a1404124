// Promise: logs agree where a small upload is a memset of the same value at the same place.
#include "tests/sim/uploads.h"

#include <gtest/gtest.h>

namespace {

bool Agree(const std::string &expected, const std::string &actual) {
    std::vector<std::string> e = {"a", expected, "b"}, a = {"a", actual, "b"};
    sim::CallUploadsWrites(&e);
    sim::CallUploadsWrites(&a);
    return e == a;
}

TEST(Uploads, AreAsGoodAsMemsets) {
    EXPECT_TRUE(Agree("S1 memcpy HtoD 0x10 host 4 0x7", "S1 memset 0x10 4 0x7 4"));
    EXPECT_TRUE(Agree("memcpy HtoD 0x10 host 2 0xffff", "memset 0x10 2 0xffff 2"));
    EXPECT_TRUE(Agree("S1 memcpy HtoD 0x10 host 1 0x0", "S1 memset 0x10 1 0x0 1"));
}

TEST(Uploads, OfAnotherValuePlaceSizeOrStreamDiffer) {
    EXPECT_FALSE(Agree("S1 memcpy HtoD 0x10 host 4 0x7", "S1 memset 0x10 4 0x8 4"));
    EXPECT_FALSE(Agree("S1 memcpy HtoD 0x10 host 4 0x7", "S1 memset 0x14 4 0x7 4"));
    EXPECT_FALSE(Agree("S1 memcpy HtoD 0x10 host 4 0x7", "S1 memset 0x10 4 0x7 1"));
    EXPECT_FALSE(Agree("S1 memcpy HtoD 0x10 host 4 0x7", "S2 memset 0x10 4 0x7 4"));
    EXPECT_FALSE(Agree("S1 memcpy HtoD 0x10 host 8", "S1 memset 0x10 8 0x7 4"));
    EXPECT_FALSE(Agree("S1 memcpy HtoD 0x10 0x90 4", "S1 memset 0x10 4 0x7 4")) << "pinned";
}

} // namespace
