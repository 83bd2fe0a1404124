// Traces as their reader gives them to a test, for as long as the test has them.
#ifndef CUSPLICE_TESTS_UNIT_TRACE_OPENED_H
#define CUSPLICE_TESTS_UNIT_TRACE_OPENED_H

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tools/trace/reader.h"

using Trace = std::unique_ptr<cst_trace, void (*)(cst_trace *)>;

// Why the last trace that was to be opened was refused; "" where it was not.
inline std::string open_error;

// Null where the reader refuses the file.
inline Trace Open(const std::string &path) {
    char text[4096] = "";
    cst_trace *trace = cst_open(path.c_str(), text, sizeof text);
    open_error = text;
    return Trace(trace, cst_free);
}

// A trace that no reader may refuse.
inline Trace OpenGood(const std::string &path) {
    Trace trace = Open(path);
    EXPECT_TRUE(trace) << path << ": " << open_error;
    return trace;
}

#endif
