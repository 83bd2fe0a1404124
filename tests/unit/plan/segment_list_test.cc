// Promise: the list of a step's segments is whole and readable as JSON, or there is none.
#include <gtest/gtest.h>

#include <string>

extern "C" {
#include "shim/plan/segment_list.h"
}

namespace {

class SegmentList : public testing::Test {
  protected:
    // "false" in front of what was written, if the list had no room.
    std::string Json(size_t room) {
        std::string text(room + 1, 'x');
        bool whole = cus_segment_list_json(&list, text.data(), room);
        EXPECT_EQ(text[room], 'x') << "nothing behind the room";
        if (room < 3)
            return whole ? "true" : "false";
        return (whole ? "" : "false ") + std::string(text.c_str());
    }

    cus_segment_list list = {};
};

TEST_F(SegmentList, SaysWhatStandsInAName) {
    cus_segment_list_add(&list, "a\"b\\c\x01", 1);
    cus_segment_list_add(&list, nullptr, 12);
    cus_segment_list_add(&list, "k", 2);
    EXPECT_EQ(Json(100), R"(["eager a\"b\\c?", "graph 12", "eager k x 2"])");
}

TEST_F(SegmentList, WithoutRoomIsEmpty) {
    EXPECT_EQ(Json(2), "false");
    EXPECT_EQ(Json(3), "false []");
    EXPECT_EQ(Json(4), "[]") << "one more than it takes";
    cus_segment_list_add(&list, "kernel", 1);
    const std::string all = R"(["eager kernel"])";
    for (size_t room = 3; room <= all.size() + 1; room++)
        EXPECT_EQ(Json(room), "false []") << room;
    EXPECT_EQ(Json(all.size() + 2), all);
}

TEST_F(SegmentList, KeepsCountOfWhatItDrops) {
    for (int i = 0; i < CUS_SEGMENT_LIST_MAX; i++)
        cus_segment_list_add(&list, i % 2 ? "a" : "b", 1);
    cus_segment_list_add(&list, nullptr, 1);
    cus_segment_list_add(&list, "a", 1);
    EXPECT_EQ(list.n, (uint32_t)CUS_SEGMENT_LIST_MAX);
    EXPECT_EQ(list.dropped, 2u);
    EXPECT_TRUE(list.graphs);
}

} // namespace
