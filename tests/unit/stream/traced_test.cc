// Promise: a trace says of each kind of op, each stream and each graph launch what it is, and says
// it once.
#include "tests/unit/stream/pointers.h"
#include "tests/unit/stream/program.h"
#include "tests/unit/trace/opened.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

extern "C" {
#include "shim/api/api.h"
#include "shim/trace/record.h"
}

namespace {

using fake::driver;

class Traced : public fake::ProgramTest {
  protected:
    void SetUp() override {}
    void TearDown() override {}
    // In a process of its own: a process records once.
    Trace Record(const std::function<void()> &program, fake::Settings settings = {}) {
        std::string path = testing::TempDir() + "traced" + std::to_string(getpid()) + ".cst";
        pid_t child = fork();
        if (child == 0) {
            fake::Reset();
            settings.insert(settings.end(),
                            {{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_SEGMENT_MAX", "4"}});
            EXPECT_TRUE(fake::StartEngine(settings));
            ProgramTest::SetUp();
            EXPECT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
            program();
            cus_record_end();
            _exit(HasFailure());
        }
        int status = 1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        Trace trace = OpenGood(path);
        unlink(path.c_str());
        return trace;
    }
    template <typename Event> static std::vector<const Event *> All(const Trace &trace, int type) {
        std::vector<const Event *> all;
        for (size_t i = 0; i < trace->n_events; i++)
            if (trace->events[i]->type == type)
                all.push_back(reinterpret_cast<const Event *>(trace->events[i]));
        return all;
    }
    void LaunchWith(CUfunction function, CUlaunchAttribute *attributes, unsigned n) {
        fake::Call call(stream_, function, 100);
        CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, stream_, attributes, n};
        call.launch.form = CUS_LAUNCH_EX;
        call.launch.attrs = attributes;
        call.launch.n_attrs = n;
        call.launch.config = &config;
        call.launch.real = (void *)fake::LaunchEx;
        EXPECT_EQ(cus_engine_launch(&call.launch), CUDA_SUCCESS);
    }
    void LaunchAs(int i, cus_launch_form form) {
        fake::Call call(stream_, functions_[i], 100 + i);
        call.launch.form = form;
        EXPECT_EQ(cus_engine_launch(&call.launch), CUDA_SUCCESS);
    }
};

TEST_F(Traced, AKindSaysWhetherANodeMayStandForIt) {
    Trace trace = Record([this] {
        cus_engine_taint(functions_[1]);
        for (int step = 0; step < 3; step++) {
            Launch(0);
            Launch(1);
            LaunchAs(2, CUS_LAUNCH_COOPERATIVE);
            Sync();
        }
    });
    ASSERT_TRUE(trace);
    std::map<std::string, uint32_t> flags;
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (trace->kinds[i] && !(trace->kinds[i]->flags & CST_KIND_OPAQUE))
            flags[cst_string(trace.get(), trace->kinds[i]->name)] = trace->kinds[i]->flags;
    const std::map<std::string, uint32_t> expected = {
        {"k0", 0}, {"k1", CST_KIND_NO_NODE}, {"k2", CST_KIND_COOPERATIVE}};
    EXPECT_EQ(flags, expected);
}

// Less is known of an op once nothing is deferred any more; its kind is told from those before it.
TEST_F(Traced, KindsOfOpsThatPassAreTheirOwn) {
    Trace trace = Record([this] {
        Steps(2);
        cus_engine_defer_off("a test says so");
        Launch(0);
    });
    ASSERT_TRUE(trace);
    std::vector<std::vector<uint32_t>> opaque;
    unsigned others = 0;
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (const cst_kind *kind = trace->kinds[i]) {
            if (kind->flags & CST_KIND_OPAQUE)
                opaque.push_back({kind->cluster, kind->cluster + 3});
            if (kind->flags & CST_KIND_OPAQUE)
                EXPECT_EQ(kind->flags, CST_KIND_OPAQUE) << "no launch was cooperative";
            else
                others++;
        }
    EXPECT_EQ(others, (unsigned)kOps);
    ASSERT_EQ(opaque.size(), 1u);
    EXPECT_EQ(opaque[0], (std::vector<uint32_t>{1, 1, 1})) << "no cluster is one of a block";
    auto ops = All<cst_op>(trace, CST_OP);
    ASSERT_EQ(ops.size(), 2u * kOps + 1);
    EXPECT_TRUE(trace->kinds[ops.back()->kind]->flags & CST_KIND_OPAQUE);
}

// The graphs of other shapes cannot be built, so those that are there are patched.
TEST_F(Traced, ALaunchSaysWhatWasDoneWithItsGraph) {
    Trace trace = Record([this] {
        Steps(4);
        driver().fail = [](const std::string &name) {
            return name == "cuGraphInstantiateWithFlags" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
        };
        Step(0, 2);
    });
    ASSERT_TRUE(trace);
    std::vector<int> choices;
    for (const cst_launch *launch : All<cst_launch>(trace, CST_LAUNCH))
        choices.push_back(launch->head.flags);
    const std::vector<int> expected = {CST_BUILT, CST_BUILT,   CST_BUILT,   CST_EXACT,  CST_EXACT,
                                       CST_EXACT, CST_PATCHED, CST_PATCHED, CST_PATCHED};
    EXPECT_EQ(choices, expected);
}

// Also the first launch, whose function is known only behind it.
TEST_F(Traced, AnOpSaysWhichRuleMadeItGoOutAlone) {
    Trace trace = Record(
        [this] {
            for (int step = 0; step < 3; step++) {
                Launch(0);
                Launch(1);
                Sync();
            }
        },
        {{"CUSPLICE_EAGER", "k1"}});
    ASSERT_TRUE(trace);
    std::vector<std::string> said;
    for (const cst_op *op : All<cst_op>(trace, CST_OP))
        said.push_back(op->eager ? cst_string(trace.get(), op->eager) : "");
    const std::vector<std::string> expected = {"observing", "rule",      "observing",
                                               "rule",      "observing", "rule"};
    EXPECT_EQ(said, expected);
}

TEST_F(Traced, AFlushSaysHowManyOpsWentOutAndWhy) {
    Trace trace = Record([this] {
        Steps(4);
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        Launch(0);
        Launch(1);
        cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuMemcpyAsync);
        Launch(2);
    });
    ASSERT_TRUE(trace);
    auto flushes = All<cst_flush>(trace, CST_FLUSH);
    ASSERT_FALSE(flushes.empty());
    EXPECT_EQ(flushes.back()->n, 2u);
    EXPECT_STREQ(cst_string(trace.get(), flushes.back()->cause), "cuMemcpyAsync");
    EXPECT_STREQ(cst_string(trace.get(), flushes.back()->reason), "api");
}

// Whether the memory is known, so that a node may stand for it, or not.
TEST_F(Traced, AKindOfMemsetsSaysHowLargeAnElementIs) {
    Trace trace = Record([this] {
        driver().table.cuMemsetD8Async = fake::Fill;
        for (int step = 0; step < 8; step++) {
            cus_memset memset = fake::FillCall(stream_);
            EXPECT_EQ(cus_engine_memset(&memset), CUDA_SUCCESS);
            Launch(0);
            Sync();
        }
        driver().table.cuCtxGetDevice = [](CUdevice *device) {
            *device = 0;
            return CUDA_SUCCESS;
        };
        driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids,
                                                   void **values, CUdeviceptr) {
            fake::Pointer pointer;
            pointer.start = 0x20000;
            pointer.size = 0x1000;
            pointer.mapped = 1;
            fake::Answer(pointer, n, ids, values);
            return CUDA_SUCCESS;
        };
        cus_memset known = fake::FillCall(stream_, CUS_ABI_LEGACY, 0x20000);
        EXPECT_EQ(cus_engine_memset(&known), CUDA_SUCCESS);
        Sync();
    });
    ASSERT_TRUE(trace);
    std::multiset<bool> opaque;
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (trace->kinds[i] && trace->kinds[i]->op == CUS_OP_MEMSET) {
            EXPECT_EQ(trace->kinds[i]->elem, 1u);
            EXPECT_STREQ(cst_string(trace.get(), trace->kinds[i]->name), "cuMemsetD8Async");
            opaque.insert(trace->kinds[i]->flags & CST_KIND_OPAQUE);
        }
    EXPECT_EQ(opaque, (std::multiset<bool>{false, true}));
}

// A kind each, however often they come: elements, two dimensions, the call and attributes tell
// them apart.
TEST_F(Traced, KindsOfOpsThatPassAreToldApart) {
    Trace trace = Record([this] {
        driver().table.cuLaunchKernelEx = fake::LaunchEx;
        cus_engine_defer_off("a test says so");
        void *const sets[] = {
            (void *)+[](CUdeviceptr, unsigned char, size_t, CUstream) { return CUDA_SUCCESS; },
            (void *)+[](CUdeviceptr, unsigned short, size_t, CUstream) { return CUDA_SUCCESS; },
            (void *)+[](CUdeviceptr, unsigned, size_t, CUstream) { return CUDA_SUCCESS; },
            (void *)+[](CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream) {
                return CUDA_SUCCESS;
            }};
        void *const copies[] = {
            (void *)+[](CUdeviceptr, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; },
            (void *)+[](CUdeviceptr, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; },
            (void *)+[](CUdeviceptr, const void *, size_t, CUstream) { return CUDA_SUCCESS; },
            (void *)+[](void *, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; }};
        CUlaunchAttribute attributes[2] = {};
        attributes[0].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        attributes[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
        for (int round = 0; round < 2; round++) {
            for (unsigned i = 0; i < 4; i++) {
                cus_memset memset = fake::FillCall(stream_);
                memset.elem = i < 3 ? 1 << i : 1;
                memset.two_d = i == 3;
                memset.pitch = i == 3 ? 64 : 0;
                memset.real = sets[i];
                EXPECT_EQ(cus_engine_memset(&memset), CUDA_SUCCESS);
                cus_copy copy = {(cus_copy_form)i, {stream_, CUS_ABI_LEGACY}, 8, 16, 4, copies[i]};
                EXPECT_EQ(cus_engine_copy(&copy), CUDA_SUCCESS);
            }
            cus_record record = {};
            record.stream = {stream_, CUS_ABI_LEGACY};
            record.real = (void *)+[](CUevent, CUstream) { return CUDA_SUCCESS; };
            EXPECT_EQ(cus_engine_record(&record), CUDA_SUCCESS);
            for (unsigned n : {0, 1, 2})
                LaunchWith(functions_[0], attributes, n);
        }
    });
    ASSERT_TRUE(trace);
    std::multiset<std::string> kinds;
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (const cst_kind *kind = trace->kinds[i]) {
            EXPECT_EQ(kind->head.words,
                      (sizeof *kind + kind->n_attributes * sizeof(cst_attribute)) / 8);
            const char *name = cst_string(trace.get(), kind->name);
            std::string all = kind->op == CUS_OP_LAUNCH ? "launch" : name ? name : "none";
            for (uint32_t a = 0; a < kind->n_attributes; a++)
                all += " " + std::to_string(cst_kind_attributes(kind)[a].id);
            kinds.insert(all);
        }
    const std::string carveout = " " + std::to_string(
                                           CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
                      domain = " " + std::to_string(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
    const std::multiset<std::string> expected = {
        "cuMemsetD8Async",      "cuMemsetD16Async",
        "cuMemsetD32Async",     "cuMemsetD2D8Async",
        "cuMemcpyAsync",        "cuMemcpyDtoDAsync_v2",
        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuEventRecord",        "launch",
        "launch" + carveout,    "launch" + domain + carveout};
    EXPECT_EQ(kinds, expected);
    EXPECT_EQ(All<cst_op>(trace, CST_OP).size(), 2 * expected.size());
}

// Of what passes, no more is known. More than 32 bits hold.
TEST_F(Traced, AnOpThatPassesSaysHowLargeItIs) {
    Trace trace = Record([this] {
        driver().table.cuMemsetD8Async = fake::Fill;
        cus_engine_defer_off("a test says so");
        cus_memset memset = fake::FillCall(stream_);
        memset.width = (5ull << 30) + 1;
        EXPECT_EQ(cus_engine_memset(&memset), CUDA_SUCCESS);
    });
    ASSERT_TRUE(trace);
    auto ops = All<cst_op>(trace, CST_OP);
    ASSERT_EQ(ops.size(), 1u);
    EXPECT_EQ(ops[0]->dims[0], (1u << 30) + 1);
    EXPECT_EQ(ops[0]->dims[1], 1u);
}

// Of a driver whose call comes to the hooks again.
TEST_F(Traced, ACallWithinACallIsNotAnotherOp) {
    Trace trace = Record(
        [this] {
            fake::Call outer(stream_, functions_[0], 1);
            outer.launch.real = (void *)+[](CUfunction f, unsigned gx, unsigned, unsigned, unsigned,
                                            unsigned, unsigned, unsigned, CUstream stream, void **,
                                            void **) { return fake::Launch(stream, f, 1, 0, gx); };
            EXPECT_EQ(cus_engine_launch(&outer.launch), CUDA_SUCCESS);
            EXPECT_EQ(driver().journal.size(), 1u);
        },
        {{"CUSPLICE_MODE", "eager"}});
    ASSERT_TRUE(trace);
    EXPECT_EQ(All<cst_op>(trace, CST_OP).size(), 1u);
}

TEST_F(Traced, WhatTheDriverSaysOfMemoryIsThere) {
    Trace trace = Record([this] {
        driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids,
                                                   void **values, CUdeviceptr address) {
            fake::Pointer one;
            one.start = address & ~0xffffull;
            one.size = 0x1000;
            if (address >= 0x20000) { // a mapping within a reservation
                one.context = nullptr;
                one.base = one.start;
                one.bytes = one.size;
                one.mapped = 1;
                one.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
            }
            fake::Answer(one, n, ids, values);
            return CUDA_SUCCESS;
        };
        cus_copy copy = {};
        copy.stream = {stream_, CUS_ABI_LEGACY};
        copy.dst = 0x10010;
        copy.src = 0x20020;
        copy.bytes = 64;
        copy.real = (void *)+[](CUdeviceptr, CUdeviceptr, size_t, CUstream) { //
            return CUDA_SUCCESS;
        };
        EXPECT_EQ(cus_engine_copy(&copy), CUDA_SUCCESS);
    });
    ASSERT_TRUE(trace);
    std::map<uint64_t, std::vector<uint64_t>> said;
    for (uint32_t i = 0; i < trace->n_ranges; i++) {
        const cst_range &range = *trace->ranges[i];
        said[range.asked] = {range.start, range.size, range.type, range.own};
    }
    const std::map<uint64_t, std::vector<uint64_t>> expected = {
        {0x10010, {0x10000, 0x1000, CU_MEMORYTYPE_DEVICE, 1}},
        {0x20020, {0x20000, 0x1000, CU_MEMORYTYPE_DEVICE, 3}}};
    EXPECT_EQ(said, expected);
}

// A definition is as long as what it says; more would be whatever lies behind it.
TEST_F(Traced, DefinitionsTakeTheWordsThatTheyNeed) {
    Trace trace = Record([this] {
        driver().table.cuLaunchKernelEx = fake::LaunchEx;
        CUlaunchAttribute attributes[2] = {};
        attributes[0].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        attributes[0].value.sharedMemCarveout = 50;
        attributes[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
        for (unsigned n : {0, 1, 2})
            LaunchWith(functions_[n], attributes, n);
        Launch(3);
        Sync();
    });
    ASSERT_TRUE(trace);
    unsigned streams = 0;
    for (uint32_t i = 0; i < trace->n_streams; i++)
        if (const cst_stream *stream = trace->streams[i]) {
            EXPECT_EQ(stream->head.words, sizeof *stream / 8);
            streams++;
        }
    EXPECT_EQ(streams, 1u);
    std::map<std::string, std::vector<uint32_t>> attributes;
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (const cst_kind *kind = trace->kinds[i]) {
            size_t bytes = sizeof *kind + kind->n_arguments * sizeof(cst_argument) +
                           kind->n_attributes * sizeof(cst_attribute);
            EXPECT_EQ(kind->head.words, bytes / 8);
            auto &ids = attributes[cst_string(trace.get(), kind->name)];
            for (uint32_t a = 0; a < kind->n_attributes; a++)
                ids.push_back(cst_kind_attributes(kind)[a].id);
        }
    const uint32_t carveout = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                   domain = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    const std::map<std::string, std::vector<uint32_t>> expected = {
        {"k0", {}}, {"k1", {carveout}}, {"k2", {carveout, domain}}, {"k3", {}}};
    EXPECT_EQ(attributes, expected);
}

// Nothing is deferred there, so that no object keeps its number.
TEST_F(Traced, AStreamWithoutOpsHasOneNumber) {
    Trace trace = Record([] {
        CUstream streams[] = {fake::MakeStream(0), fake::MakeStream(0), nullptr};
        for (int i = 0; i < 9; i++) {
            cus_stream_ref ref = {streams[i % 3], CUS_ABI_LEGACY};
            cus_engine_flush(CUS_SCOPE_S, &ref, CUS_CAUSE_APP);
        }
    });
    ASSERT_TRUE(trace);
    std::set<uint32_t> numbers;
    auto calls = All<cst_call>(trace, CST_CALL);
    for (const cst_call *call : calls)
        numbers.insert(call->stream);
    EXPECT_EQ(calls.size(), 9u);
    EXPECT_EQ(numbers.size(), 3u);
}

// What comes back at the handle is another one; others stay what they are.
TEST_F(Traced, AStreamThatGoesTakesItsNumberAlong) {
    Trace trace = Record([] {
        cus_stream_ref goes = {fake::MakeStream(0), CUS_ABI_LEGACY};
        cus_stream_ref stays = {fake::MakeStream(0), CUS_ABI_LEGACY};
        for (int i = 0; i < 2; i++) {
            cus_engine_flush(CUS_SCOPE_S, &stays, CUS_CAUSE_APP);
            cus_engine_flush(CUS_SCOPE_S, &goes, CUS_CAUSE_APP);
            cus_engine_stream_gone(&goes);
        }
    });
    ASSERT_TRUE(trace);
    auto calls = All<cst_call>(trace, CST_CALL);
    std::vector<uint32_t> numbers;
    for (const cst_call *call : calls)
        if (call->stream)
            numbers.push_back(call->stream);
    ASSERT_EQ(numbers.size(), 6u);
    EXPECT_EQ(numbers[0], numbers[3]);
    EXPECT_EQ(numbers[1], numbers[2]) << "the call that says that it goes";
    EXPECT_NE(numbers[1], numbers[4]);
    EXPECT_EQ(numbers[4], numbers[5]);
}

// It has the same handle in each. Calls and ops have the same number.
TEST_F(Traced, TheLegacyStreamOfEachContextHasANumber) {
    Trace trace = Record([this] {
        cus_stream_ref ref = {nullptr, CUS_ABI_LEGACY};
        auto call = [&] {
            cus_engine_flush(CUS_SCOPE_S, &ref, CUS_CAUSE_APP);
            EXPECT_EQ(fake::Launch(nullptr, functions_[0], 1), CUDA_SUCCESS);
        };
        for (int i = 0; i < 4; i++) {
            call();
            driver().table.cuCtxPushCurrent_v2((CUcontext)0x3000);
            call();
            CUcontext other;
            driver().table.cuCtxPopCurrent_v2(&other);
        }
    });
    ASSERT_TRUE(trace);
    auto calls = All<cst_call>(trace, CST_CALL);
    auto ops = All<cst_op>(trace, CST_OP);
    ASSERT_EQ(calls.size(), 8u);
    ASSERT_EQ(ops.size(), 8u);
    EXPECT_NE(calls[0]->stream, calls[1]->stream);
    for (int i = 0; i < 8; i++) {
        EXPECT_EQ(calls[i]->stream, calls[i % 2]->stream) << i;
        EXPECT_EQ(ops[i]->stream, calls[i]->stream) << i;
    }
}

// What the thread's last stream is like says nothing about another one.
TEST_F(Traced, OfAStreamWithoutOpsNothingIsKnown) {
    CUstream made = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Trace trace = Record([&] {
        stream_ = made;
        Launch(0);
        Sync();
        cus_stream_ref ref = {other, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_S, &ref, CUS_CAUSE_APP);
    });
    ASSERT_TRUE(trace);
    std::map<uint64_t, const cst_stream *> streams;
    for (uint32_t i = 0; i < trace->n_streams; i++)
        if (trace->streams[i])
            streams[trace->streams[i]->handle] = trace->streams[i];
    ASSERT_TRUE(streams.count(reinterpret_cast<uintptr_t>(made)));
    ASSERT_TRUE(streams.count(reinterpret_cast<uintptr_t>(other)));
    const cst_stream &known = *streams[reinterpret_cast<uintptr_t>(made)];
    const cst_stream &unknown = *streams[reinterpret_cast<uintptr_t>(other)];
    EXPECT_EQ(known.kind, CST_STREAM_CREATED);
    EXPECT_EQ(known.flags, CU_STREAM_NON_BLOCKING);
    EXPECT_EQ(unknown.kind, CST_STREAM_UNKNOWN);
    EXPECT_EQ(unknown.flags, 0u);
}

} // namespace
