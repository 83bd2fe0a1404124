// A test that waits for what another thread or process does.
#ifndef CUSPLICE_TESTS_WITHIN_H
#define CUSPLICE_TESTS_WITHIN_H

#include <unistd.h>

#include <chrono>
#include <functional>

// Asks each millisecond until the condition holds, for so many seconds at most. Does it?
inline bool Within(int seconds, const std::function<bool()> &condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        usleep(1000);
    }
    return true;
}

#endif
