// Promise: an event is held as long as any node holds it.
#include <gtest/gtest.h>

extern "C" {
#include "shim/graph/held.h"
}

namespace {

const CUevent kEvent = reinterpret_cast<CUevent>(0x1000),
              kOther = reinterpret_cast<CUevent>(0x2000);

TEST(Held, AnEventIsHeldByEachNode) {
    EXPECT_FALSE(cus_held(kEvent));
    ASSERT_TRUE(cus_held_add(kEvent));
    ASSERT_TRUE(cus_held_add(kEvent));
    ASSERT_TRUE(cus_held_add(kOther));
    cus_held_drop(kEvent);
    EXPECT_TRUE(cus_held(kEvent)) << "by the other node";
    cus_held_drop(kEvent);
    EXPECT_FALSE(cus_held(kEvent));
    EXPECT_TRUE(cus_held(kOther));
    cus_held_drop(kOther);
    EXPECT_FALSE(cus_held(kOther));
}

TEST(Held, AnEventThatNoNodeHoldsIsDroppedInVain) {
    ASSERT_TRUE(cus_held_add(kOther));
    cus_held_drop(kEvent);
    EXPECT_FALSE(cus_held(kEvent));
    EXPECT_TRUE(cus_held(kOther));
    cus_held_drop(kOther);
}

} // namespace
