// Promise: each GPU of a process is listed once, in the order of first use, by its place on the
// bus.
#include "shim/stats/gpus.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace {

class Gpus : public testing::Test {
  protected:
    void SetUp() override { cus_gpus_drop(); }
    void TearDown() override { cus_gpus_drop(); }
    static std::string Shown() {
        uint32_t list[CUS_GPUS];
        char text[CUS_GPU_TEXT];
        cus_gpu_show(list, cus_gpus(list), text);
        return text;
    }
};

TEST_F(Gpus, AreShownAsLspciWritesThem) {
    EXPECT_EQ(Shown(), "-");
    cus_gpu_note(0); // none
    EXPECT_EQ(Shown(), "-");
    cus_gpu_note(cus_gpu_of(0, 0x1b, 0));
    EXPECT_EQ(Shown(), "1b:00.0");
    cus_gpus_drop();
    cus_gpu_note(cus_gpu_of(0xffff, 0xff, 0x1f));
    EXPECT_EQ(Shown(), "ffff:ff:1f.0");
    cus_gpus_drop();
    cus_gpu_note(cus_gpu_of(0, 0, 0)); // a GPU of a virtual machine
    EXPECT_EQ(Shown(), "00:00.0");
}

TEST_F(Gpus, EachIsListedOnceInTheOrderOfFirstUse) {
    for (int bus : {7, 3, 7, 9, 3})
        cus_gpu_note(cus_gpu_of(1, bus, 2));
    uint32_t list[CUS_GPUS];
    ASSERT_EQ(cus_gpus(list), 3u);
    EXPECT_EQ(list[0], cus_gpu_of(1, 7, 2));
    EXPECT_EQ(list[1], cus_gpu_of(1, 3, 2));
    EXPECT_EQ(list[2], cus_gpu_of(1, 9, 2));
    EXPECT_EQ(Shown(), "0001:07:02.0 +2");
}

TEST_F(Gpus, NoMoreAreKeptThanThereIsRoomFor) {
    for (int bus = 0; bus < 40; bus++)
        cus_gpu_note(cus_gpu_of(0, bus, 0));
    uint32_t list[CUS_GPUS];
    EXPECT_EQ(cus_gpus(list), (unsigned)CUS_GPUS);
    EXPECT_EQ(Shown(), "00:00.0 +15");
}

TEST_F(Gpus, ThreadsNoteTheSameOnesOnce) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([i] {
            for (int k = 0; k < 4; k++)
                cus_gpu_note(cus_gpu_of(0, (i + k) % 4, 0));
        });
    for (std::thread &thread : threads)
        thread.join();
    uint32_t list[CUS_GPUS];
    EXPECT_EQ(cus_gpus(list), 4u);
}

} // namespace
