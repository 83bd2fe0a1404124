// Short traces, as the tests of the file and of its reader write them.
#ifndef CUSPLICE_TESTS_UNIT_TRACE_SHORT_H
#define CUSPLICE_TESTS_UNIT_TRACE_SHORT_H

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/unit/trace/golden.h"

// The golden trace, made anew.
inline std::string GoldenBytes(bool packed = false) {
    std::string path = Fresh(packed ? "packed.cst" : "whole.cst");
    Synth synth(path, packed);
    WriteGolden(&synth);
    EXPECT_EQ(synth.Close(), 0);
    return ReadFile(path);
}

// A file of one block with what `fill` puts there, behind thread 1, stream 1 and kernel 1.
inline std::string With(const std::function<void(Synth *)> &fill, bool end = true) {
    std::string path = Fresh("with.cst");
    Synth s(path);
    s.Thread(1, "");
    s.Stream(CST_STREAM_LEGACY, 0);
    s.Kernel("k");
    fill(&s);
    if (end)
        EXPECT_EQ(s.Close(), 0);
    else
        s.Tear();
    return path;
}

#endif
