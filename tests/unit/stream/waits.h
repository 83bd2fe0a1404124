// Does a thread of this process wait for something?
#ifndef CUSPLICE_TESTS_UNIT_STREAM_WAITS_H
#define CUSPLICE_TESTS_UNIT_STREAM_WAITS_H

#include "tests/text.h"

#include <string>

inline bool Waits(int tid) {
    std::string text = ReadFile("/proc/self/task/" + std::to_string(tid) + "/stat");
    size_t end = text.rfind(')');
    return end != std::string::npos && text.compare(end, 3, ") S") == 0;
}

#endif
