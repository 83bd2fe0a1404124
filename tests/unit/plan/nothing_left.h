// Does code give back all memory that it takes?
#ifndef CUSPLICE_TESTS_UNIT_PLAN_NOTHING_LEFT_H
#define CUSPLICE_TESTS_UNIT_PLAN_NOTHING_LEFT_H

#include <gtest/gtest.h>
#include <malloc.h>

// `once` runs many times. The C library keeps some memory for itself, which is there by the second
// half; a block that `once` leaves behind each time is more.
template <class Once> void ExpectNothingLeft(Once once) {
    const int times = 300, smallest = 32;
    auto held = [&] {
        for (int i = 0; i < times; i++)
            once();
        return mallinfo2().uordblks;
    };
    size_t before = held();
    EXPECT_LT(held(), before + times * smallest * 3 / 4);
}

#endif
