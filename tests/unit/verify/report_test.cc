// Promise: a finding is kept once for each place, with the arguments that differ. File and summary
// agree.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/text.h"

extern "C" {
#include "shim/verify/report.h"
}

namespace {

// Shape and params of one launch of a kernel with an 8 and a 4 byte argument.
struct Held {
    alignas(8) uint8_t bytes[sizeof(cus_values) + 16] = {};

    Held(uint32_t grid, uint64_t pointer, uint32_t number) {
        auto *values = (cus_values *)bytes;
        values->dims[0] = grid;
        memcpy(values->params, &pointer, 8);
        memcpy(values->params + 8, &number, 4);
    }
    const cus_values *get() const { return (const cus_values *)bytes; }
};

std::string Written() {
    std::string path = testing::TempDir() + "/report." + std::to_string(getpid());
    cus_report_end(path.c_str());
    std::string text = ReadFile(path);
    unlink(path.c_str());
    return text;
}

// One process, one report: the tests of it are one.
TEST(Report, TellsWhatWasFound) {
    cus_argument arguments[] = {{0, 8}, {8, 4}};
    cus_layout layout = {2, 12, arguments};
    cus_kind kind = {};
    kind.name = "scale";
    kind.layout = &layout;
    kind.param_bytes = 12;
    Held requested(7, 0x1122334455667788, 9), node(5, 0x1122334455667788, 8);
    cus_difference found = {};
    found.stream = 13;
    found.ops = 20;
    found.op = 4;
    found.what = {&kind, requested.get(), node.get()};
    found.made = "patched";
    found.range = {0xabc000, 64, false};
    testing::internal::CaptureStderr();
    cus_report_difference(&found);
    cus_report_difference(&found);
    found.op = -1;
    cus_report_difference(&found);
    cus_verify_counts counts = {};
    counts.launches = 5;
    counts.checked = 4;
    counts.differing = 3;
    counts.same = 1;
    cus_report_count(&counts);
    cus_report_skip(CUS_UNVERIFIED_BUDGET);
    EXPECT_FALSE(cus_report_is_unstable("noise"));
    cus_report_unstable("noise");
    EXPECT_TRUE(cus_report_is_unstable("noise"));
    EXPECT_FALSE(cus_report_is_unstable("nois"));

    std::string file = Written(), said = testing::internal::GetCapturedStderr();
    for (const char *part : {"\"graph_launches\": 5",
                             "\"verified\": 4",
                             "\"equal\": 1",
                             "\"different\": 3",
                             "\"budget\": 1",
                             "\"kernel\": \"scale\"",
                             "\"op\": 4",
                             "\"ops\": 20",
                             "\"stream\": 13",
                             "\"graph\": \"patched\"",
                             "\"times\": 2",
                             "\"times\": 1",
                             "\"memory\": \"0xabc000\"",
                             "\"memory_bytes\": 64",
                             "\"grid\": [7, 0, 0]",
                             "\"grid\": [5, 0, 0]",
                             "\"index\": 1",
                             "\"asked\": \"0x00000009\"",
                             "\"node_before\": \"0x00000008\"",
                             "\"kernel\": null",
                             "\"noise\""})
        EXPECT_TRUE(Has(file, part)) << part << "\n" << file;
    EXPECT_FALSE(Has(file, "\"index\": 0")) << "the first argument is the same\n" << file;
    for (const char *part :
         {"first at op 5 of 20, scale", "4 of 5 graph launches verified",
          "1 equal, 3 differ, 0 not the same twice", "1 not verified: its memory is more than",
          "op 5 of 20, scale <<<(7,0,0), (0,0,0), 0>>>, graph patched, 2 times",
          "its node held <<<(5,0,0), (0,0,0), 0>>> before",
          "argument 1: asked for 0x00000009, its node held 0x00000008 before",
          "not the same twice: noise", "the driver cannot cut it"})
        EXPECT_TRUE(Has(said, part)) << part << "\n" << said;
}

TEST(Report, AFileThatCannotBeWrittenIsSaid) {
    testing::internal::CaptureStderr();
    cus_report_end("/no/such/folder/report.json");
    EXPECT_TRUE(Has(testing::internal::GetCapturedStderr(),
                    "/no/such/folder/report.json cannot be written: No such file"));
}

} // namespace
