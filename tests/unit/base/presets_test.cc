// Promise: presets are found while a thread is inside a dlopen, whose constructors may wait for the
// thread that looks for them.
#include "shim/base/presets.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <stdlib.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

namespace {

bool answered;

// On a thread of its own, while this one is in a constructor and so holds the loader's lock.
void LookElsewhere() {
    std::packaged_task<bool()> look([] {
        char path[PATH_MAX];
        return cus_preset_find("no_such_preset", path, sizeof path);
    });
    std::future<bool> found = look.get_future();
    std::thread(std::move(look)).detach(); // it ends at the latest when the dlopen has
    answered = found.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
}

TEST(Presets, AreFoundWhileConstructorsRun) {
    setenv("CONSTRUCTED_CALLS", std::to_string((uintptr_t)LookElsewhere).c_str(), 1);
    void *library = dlopen("tests/unit/base/libconstructed.so", RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_TRUE(answered) << "the look-up waits for the loader's lock";
}

} // namespace
