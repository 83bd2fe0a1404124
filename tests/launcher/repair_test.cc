// Promise: repair makes a whole trace of what can be read of a damaged one, and says what is
// missing; the verbs that refuse a damaged trace name it. Verbs that read a trace once read pipes.
#include <signal.h>
#include <sys/stat.h>

#include "tests/launcher/traces.h"

namespace {

std::string Out(const std::string &name) {
    std::string path = Folder() + "/" + name;
    unlink(path.c_str());
    unlink((path + ".partial").c_str());
    return path;
}

// The golden trace with one byte changed that stands in a text.
std::string Damaged(const std::string &name) {
    std::string bytes = ReadFile(golden), path = Out(name);
    size_t at = bytes.find("gemm");
    EXPECT_NE(at, std::string::npos);
    bytes[at] = 'X';
    return Write(name, bytes), path;
}

TEST(Repair, EveryVerbNamesItAndReadsWhatItMakes) {
    std::string bad = Damaged("bad.cst"), good = Out("good.cst"), before = ReadFile(bad);
    for (const Strings &verb : std::vector<Strings>{{"info"},
                                                    {"dump"},
                                                    {"report", "kernels"},
                                                    {"whatif"},
                                                    {"export", "-"},
                                                    {"trim", "--pack"}}) {
        Strings all = verb;
        if (verb[0] == "export")
            all = {"export", "--jsonl", "-"};
        all.push_back(bad);
        std::string err = Fails(1, all);
        EXPECT_TRUE(Has(err, bad + ": corrupt: ") && Has(err, "cusplice repair")) << err;
    }
    std::string said = Says({"repair", "-o", good, bad});
    EXPECT_TRUE(Has(said, good + ": ") && Has(said, "left out: ") && Has(said, "in 1 place\n") &&
                Has(said, "lost: at least "))
        << said;
    EXPECT_EQ(ReadFile(bad), before);
    sim::Json j = Parse(Says({"info", "--json", good}));
    EXPECT_EQ(j.text["closed"], "true");
    EXPECT_EQ(j.text["facts.gpu"], "simulator");
    EXPECT_EQ(j.text["facts.trimmed.from"], bad);
    EXPECT_EQ(j.text["facts.trimmed.repaired"], "true");
    EXPECT_EQ(j.Number("facts.trimmed.damaged_places"), 1);
    EXPECT_EQ(j.Number("facts.trimmed.lost_ops") + j.Number("ops"), 21);
    EXPECT_EQ(j.Number("lost_records"), 7 + j.Number("facts.trimmed.lost_records"));
    for (const Strings &verb : std::vector<Strings>{
             {"dump"}, {"report", "kernels"}, {"report", "segments"}, {"whatif"}}) {
        Strings all = verb;
        all.push_back(good);
        EXPECT_EQ(Cusplice(all).Exit(), 0) << verb[0];
    }
    EXPECT_TRUE(Has(Says({"repair", good}), "nothing is damaged, and no file was made"));
}

TEST(Repair, WhatWasKilledIsWholeBehindIt) {
    std::string path = Make("killed.cst", [](Synth *s) {
        s->Op(1, s->Kernel("k"));
        s->Sync(1);
    });
    std::string bytes = ReadFile(path);
    Write("killed.cst.partial", bytes.substr(0, bytes.size() - sizeof(cst_block)));
    std::string made = Out("killed.repaired.cst");
    std::string said = Says({"repair", path + ".partial"});
    EXPECT_TRUE(Has(said, made + ": 1 ops") && Has(said, "did not end in good order")) << said;
    sim::Json j = Parse(Says({"info", "--json", made}));
    EXPECT_EQ(j.text["closed"], "true");
    EXPECT_EQ(j.text["facts.trimmed.closed"], "false");
}

TEST(Repair, ReplacesNothingAndLeavesNothingHalf) {
    std::string bad = Damaged("bad2.cst");
    std::string there = Write("there.cst", "here first");
    EXPECT_TRUE(Has(Fails(1, {"repair", "-o", there, bad}), "is there already"));
    EXPECT_EQ(ReadFile(there), "here first");
    std::string before = ReadFile(bad);
    Result itself = Cusplice({"repair", "-o", bad, bad});
    EXPECT_NE(itself.Exit(), 0) << itself.err;
    EXPECT_EQ(ReadFile(bad), before);
    EXPECT_TRUE(Has(Fails(1, {"repair", Write("no.cst", std::string(500, 'x'))}), "not a trace"));
    EXPECT_TRUE(Has(Fails(1, {"repair", Folder() + "/nowhere.cst"}), "No such file"));
    EXPECT_TRUE(Has(Fails(2, {"repair"}), "TRACE is missing"));
    // Told to, it replaces a file, but not the damaged one; a trace is no text for stdout.
    EXPECT_TRUE(Has(Fails(1, {"repair", "--force", "-o", bad, bad}), "it is what is read"));
    EXPECT_EQ(ReadFile(bad), before);
    EXPECT_TRUE(Has(Says({"repair", "--force", "-o", there, bad}), there + ": "));
    EXPECT_EQ(Cusplice({"info", there}).Exit(), 0);
    EXPECT_TRUE(Has(Fails(2, {"repair", "-o", "-", bad}), "a trace goes into a file"));
    EXPECT_NE(access("-", F_OK), 0);
    // Nothing but a head and facts.
    std::string bytes = ReadFile(golden);
    std::string none = Write("none.cst", bytes.substr(0, sizeof(cst_file) + 20));
    EXPECT_TRUE(Has(Fails(1, {"repair", none}), "no op in it can be read"));
    // A stream, and nothing on it.
    bytes = ReadFile(Make("idle.cst", [](Synth *s) { s->Sync(1); }));
    std::string idle = Write("idle.cut.cst", bytes.substr(0, bytes.size() - sizeof(cst_block)));
    EXPECT_TRUE(Has(Fails(1, {"repair", idle}), "no op in it can be read"));
    EXPECT_NE(access((Folder() + "/idle.cut.repaired.cst").c_str(), F_OK), 0);
}

TEST(Repair, WhatLacksSomethingIsNoReplay) {
    auto make = [](const std::string &name) {
        return Make(name, [](Synth *s) {
            s->Op(1, s->Kernel("kernel"));
            auto *work =
                static_cast<cst_work *>(cst_sink_add(&s->sink, CST_WORK, sizeof(cst_work)));
            work->head.thread = 1;
            work->head.flags = CST_WORK_SYNC;
            work->sync = 1;
            s->Block();
            s->Sync(1);
        });
    };
    std::string path = make("replay.cst"), made = Out("replay.repaired.cst");
    EXPECT_EQ(Parse(Says({"info", "--json", path})).Number("replay_calls"), 1);
    std::string bytes = ReadFile(path);
    // The end is missing; a byte of the last block is another one.
    std::string cut = bytes.substr(0, bytes.size() - sizeof(cst_block));
    std::string flipped = bytes;
    flipped[cut.size() - 4] ^= 1;
    for (const std::string &damaged : {cut, flipped}) {
        Write("replay.cst", damaged);
        EXPECT_TRUE(Has(Says({"repair", path}), "it cannot be replayed") || damaged == flipped);
        sim::Json j = Parse(Says({"info", "--json", made}));
        EXPECT_EQ(j.Number("replay_calls"), 0);
        EXPECT_EQ(j.Number("ops"), 1);
        unlink(made.c_str());
    }
}

// ---- pipes ----

Result Piped(const std::string &line, const Environment &more = {}) {
    return RunProgram({"/bin/bash", "-c", line}, more);
}

TEST(Pipes, AreReadAsFiles) {
    for (const Strings &verb : std::vector<Strings>{{"info"},
                                                    {"info", "--json"},
                                                    {"dump"},
                                                    {"report", "kernels"},
                                                    {"report", "breaks", "--format", "csv"},
                                                    {"export", "--jsonl", "-"},
                                                    {"whatif", "--format", "csv"}}) {
        Strings plain = verb;
        plain.push_back(golden);
        std::string want = Cusplice(plain).out, line = CuspliceProgram();
        for (const std::string &word : verb)
            line += " " + word;
        Result r = Piped("cat " + std::string(golden) + " | " + line + " /dev/stdin");
        EXPECT_EQ(r.Exit(), 0) << line << r.err;
        for (size_t at; (at = r.out.find("/dev/stdin")) != std::string::npos;)
            r.out.replace(at, 10, golden);
        EXPECT_EQ(r.out, want) << line;
        r = Piped(line + " <(sleep 0.3; cat " + golden + ")");
        EXPECT_EQ(r.Exit(), 0) << line << r.err;
    }
}

TEST(Pipes, WithANameMayBeOpenedByTheirWriterALittleLater) {
    std::string pipe = Out("named");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    Result r = Piped("cat " + std::string(golden) + " >" + pipe + " & " + CuspliceProgram() +
                     " info " + pipe);
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

TEST(Pipes, EndWhereTheBoundIs) {
    std::string big = Make("big.cst", [](Synth *s) {
        for (int i = 0; i < 60000; i++)
            s->Op(1, i ? 1 : s->Kernel("k"));
    });
    std::string info = CuspliceProgram() + " info";
    Result r = Piped("cat " + big + " | " + info + " --max-memory 2 /dev/stdin");
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "more than 2 MiB come through the pipe: --max-memory MIB")) << r.err;
    EXPECT_EQ(Piped("cat " + big + " | " + info + " --max-memory 0 /dev/stdin").Exit(), 0);
    EXPECT_EQ(Piped("cat " + big + " | " + info + " /dev/stdin").Exit(), 0);
}

TEST(Pipes, ThatHoldNoTraceAreSaid) {
    std::string info = CuspliceProgram() + " info /dev/stdin";
    Result r = Piped("true | " + info);
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "nothing comes through that pipe")) << r.err;
    EXPECT_TRUE(Has(Piped("echo hello | " + info).err, "is too short"));
    EXPECT_TRUE(Has(Piped("yes | head -c 5000 | " + info).err, "not a trace of cusplice"));
    // A trace is played by another process, which cannot read the pipe again.
    r = Piped("cat " + std::string(golden) + " | " + CuspliceProgram() + " replay /dev/stdin");
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "it is no regular file")) << r.err;
}

TEST(Pipes, AFolderIsNoTraceAndTheVerbsThatTakeOneAreNamed) {
    for (const Strings &verb :
         std::vector<Strings>{{"info"}, {"dump"}, {"whatif"}, {"trim", "--pack"}, {"repair"}}) {
        Strings all = verb;
        all.push_back(Folder());
        std::string err = Fails(1, all);
        EXPECT_TRUE(Has(err, Folder() + ": not a trace of cusplice: it is a folder")) << err;
    }
}

} // namespace
