// Promise: each verb reads or refuses a hostile trace, with little memory, and says what is wrong.
// If a verb takes too long, the test's time limit ends it.
#include <sys/stat.h>
#include <zstd.h>

#include "tests/launcher/traces.h"
#include "tests/text.h"

namespace {

constexpr long kPeakKib = 200 << 10;

// qemu ignores RLIMIT_DATA, by which a verb bounds its memory.
bool Bounded() {
    return !Sanitized() && !getenv("CUS_TEST_EMULATED");
}

// What a verb that reads a trace is called with before its path.
std::vector<Strings> Readers() {
    std::string out = Folder() + "/hostile-out";
    return {{"info"},
            {"info", "--json"},
            {"dump"},
            {"report", "kernels", "--names", "demangled"},
            {"report", "segments"},
            {"report", "cache"},
            {"report", "breaks"},
            {"report", "coverage"},
            {"report", "--force", "--html", out},
            {"export", "--force", "--perfetto", out},
            {"export", "--force", "--jsonl", out},
            {"export", "--force", "--sqlite", out},
            {"report"},
            {"rules"},
            {"whatif"}};
}

Result On(Strings verb, const std::string &path) {
    verb.push_back(path);
    Result r = Cusplice(verb);
    EXPECT_TRUE(WIFEXITED(r.status)) << verb[0];
    EXPECT_TRUE(!Bounded() || r.peak_kib < kPeakKib) << verb[0] << " " << r.peak_kib;
    return r;
}

// Doubles with each of its parts.
std::string Name(int parts) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string name = "_Z1f1AIiiE";
    for (int i = 0; i < parts; i++)
        name += std::string("S_IS") + digits[i] + "_S" + digits[i] + "_E";
    return name;
}

TEST(Hostile, ANameThatStandsForGigabytesStaysMangled) {
    std::string path = Make("name.cst", [](Synth *s) {
        for (int parts = 20; parts < 30; parts++)
            s->Op(1, s->Kernel(Name(parts)));
        s->Op(1, s->Kernel("_Z4kindIfEvPT_S1_S1_S1_S1_S1_S1_S1_S1_S1_"));
    });
    for (const Strings &verb : Readers())
        EXPECT_EQ(On(verb, path).Exit(), 0) << verb[0] << verb[1 % verb.size()];
    Result r = On({"report", "kernels", "--names", "demangled", "--format", "csv"}, path);
    EXPECT_TRUE(Has(r.out, Name(29))) << r.out;
}

TEST(Hostile, ManyKindsOfOneNameShareIt) {
    std::string path = Make(
        "kinds.cst",
        [](Synth *s) {
            std::string name = "_Z60000" + std::string(60000, 'k') + "v";
            for (int i = 0; i < 3000; i++)
                s->Kernel(name, 0);
            s->Op(1, 1);
        },
        true);
    for (const Strings &verb : Readers())
        EXPECT_EQ(On(verb, path).Exit(), 0) << verb[0] << verb[1 % verb.size()];
}

TEST(Hostile, ManyStreamsOfCuptiCostWhatTheyAre) {
    std::string path = Make("lanes.cst", [](Synth *s) {
        uint32_t kernel = s->Kernel("k");
        s->Op(1, kernel);
        for (uint32_t i = 0; i < 100000; i++)
            s->GpuStream(1 + i % 2, i);
        s->Gpu(7, CST_GPU_KERNEL, "k");
    });
    for (const Strings &verb : Readers())
        EXPECT_EQ(On(verb, path).Exit(), 0) << verb[0];
}

TEST(Hostile, ManyFactsCostWhatTheyAre) {
    std::string facts = "{";
    for (int i = 2; i < 100000; i++)
        facts += "\"trimmed_" + std::to_string(i) + "\":1,";
    std::string path = Make("facts.cst", [&](Synth *s) {
        s->Facts(facts + "\"trimmed\":1}");
        s->Op(1, s->Kernel("k"));
    });
    EXPECT_EQ(On({"info"}, path).Exit(), 0);
    std::string out = Folder() + "/facts.trim.cst";
    unlink(out.c_str());
    EXPECT_EQ(On({"trim", "--pack", "-o", out}, path).Exit(), 0);
    EXPECT_TRUE(Has(On({"info", "--json"}, out).out, "\"trimmed_100000\":{"));
}

// Two blocks of records that nobody knows, 40 MiB each.
std::string Bomb() {
    return Make("bomb.cst", [](Synth *s) {
        constexpr size_t kRecord = 65535 * 8;
        std::string raw((40 << 20) / kRecord * kRecord, 0);
        for (size_t at = 0; at < raw.size(); at += kRecord) {
            cst_record head = {};
            head.type = 200;
            head.words = 65535;
            memcpy(&raw[at], &head, sizeof head);
        }
        std::string frame(ZSTD_compressBound(raw.size()), 0);
        frame.resize(ZSTD_compress(&frame[0], frame.size(), raw.data(), raw.size(), 19));
        for (int i = 0; i < 2; i++)
            cst_out_block(&s->out, CST_BLOCK_RECORDS, CST_BLOCK_ZSTD, frame.data(), frame.size(),
                          raw.size());
    });
}

TEST(Hostile, WhatUnpacksToTooMuchIsRefusedByNameOfTheOption) {
    std::string path = Bomb();
    std::vector<Strings> all = Readers();
    all.push_back({"trim", "--pack"});
    all.push_back({"replay"});
    all.push_back({"bench"});
    for (const Strings &verb : all) {
        Result r = On(verb, path);
        EXPECT_EQ(r.Exit(), 1) << verb[0];
        EXPECT_TRUE(Has(r.err, path + ": its records unpack to more than 64 MiB") &&
                    Has(r.err, "--max-memory MIB sets another bound"))
            << verb[0] << r.err;
    }
    EXPECT_EQ(Cusplice({"info", "--max-memory", "400", path}).Exit(), 0);
    EXPECT_EQ(Cusplice({"info", "--max-memory=0", path}).Exit(), 0);
    EXPECT_EQ(Cusplice({"export", "--max-memory=0", "--jsonl", "-", path}).Exit(), 0);
}

TEST(Hostile, ABoundOnMemoryIsSaidWhereItIsMet) {
    std::string path = Make("small.cst", [](Synth *s) {
        for (int i = 0; i < 100000; i++)
            s->Op(1, i ? 1 : s->Kernel("k"));
    });
    EXPECT_EQ(Cusplice({"info", path}).Exit(), 0);
    if (!Bounded())
        GTEST_SKIP() << "nothing bounds the memory here";
    std::string err = Fails(1, {"info", "--max-memory", "1", path});
    EXPECT_TRUE(Has(err, "not enough memory") && Has(err, "it may use 1 MiB; --max-memory")) << err;
}

// A page is whole, or it is not there.
TEST(Hostile, APageThatDoesNotFitIsNotWritten) {
    std::string path = Make(
        "page.cst",
        [](Synth *s) {
            for (int i = 0; i < 3000; i++)
                s->Kernel("_Z4000" + std::string(4000, 'k') + "v", 0);
            s->Op(1, 1);
        },
        true);
    std::string out = Folder() + "/page.html";
    auto page = [&](const std::string &mib) {
        unlink(out.c_str());
        return Cusplice({"report", "--html", out, "--max-memory", mib, path}).Exit();
    };
    ASSERT_EQ(page("0"), 0);
    std::string whole = ReadFile(out);
    ASSERT_GT(whole.size(), 12000000u);
    if (!Bounded())
        GTEST_SKIP() << "nothing bounds the memory here";
    int failed = 0;
    for (const char *mib : {"12", "16", "20", "24", "28", "32", "40", "48", "64"}) {
        bool fails = page(mib) != 0;
        failed += fails;
        EXPECT_EQ(fails, access(out.c_str(), F_OK) != 0) << mib;
        EXPECT_TRUE(fails || ReadFile(out) == whole) << mib;
    }
    EXPECT_GE(failed, 3);
}

TEST(Hostile, ABoundOnTimeLeavesNoHalfOfAFile) {
    std::string path = Make(
        "slow.cst",
        [](Synth *s) {
            std::string name = "_Z60000" + std::string(60000, 'k') + "v";
            for (int i = 0; i < 400000; i++)
                s->Kernel(name, 0);
            s->Op(1, 1);
        },
        true);
    std::string out = Folder() + "/slow.sqlite";
    Result r = Cusplice({"export", "--max-seconds=1", "--sqlite", out, path});
    EXPECT_EQ(r.Exit(), 1) << r.err;
    EXPECT_EQ(r.err, "cusplice: stopped after 1 s of processor time; --max-seconds S sets another "
                     "bound, 0 none\n");
    r = RunProgram({"/bin/sh", "-c", "ls " + Folder() + " | grep slow.sqlite"});
    EXPECT_EQ(r.out, "");
}

TEST(Hostile, APipeOrADeviceIsNotWaitedFor) {
    std::string pipe = Folder() + "/pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::vector<Strings> all = Readers();
    all.push_back({"trim", "--pack"});
    all.push_back({"replay"});
    all.push_back({"bench"});
    all.push_back({"import"});
    all.push_back({"diff", golden});
    all.push_back({"whatif", golden, "--gpu-times"});
    all.push_back({"whatif", golden, "--cost"});
    for (const std::string &path : {pipe, std::string("/dev/zero")})
        for (const Strings &verb : all) {
            Result r = On(verb, path);
            EXPECT_EQ(r.Exit(), 1) << verb[0];
            EXPECT_TRUE(Has(r.err, "it is no regular file")) << verb[0] << r.err;
        }
}

TEST(Hostile, BoundsAreNumbers) {
    for (Strings verb : std::vector<Strings>{{"info"},
                                             {"export"},
                                             {"import"},
                                             {"whatif"},
                                             {"replay"},
                                             {"bench"},
                                             {"diff"},
                                             {"dump"},
                                             {"trim"}})
        for (const char *option : {"--max-memory", "--max-seconds"}) {
            Strings all = {verb[0], option, "many", "x"};
            EXPECT_TRUE(Has(Fails(2, all), std::string(option) + " many: a number from 0 on"));
            EXPECT_TRUE(Has(Cusplice({verb[0], "--help"}).out, option)) << verb[0];
        }
}

} // namespace
