// Promise: files that verbs make from a trace are as private as the trace. They never replace what
// they are made from, nor each other.
#include <sys/stat.h>

#include "tests/launcher/traces.h"

namespace {

mode_t Mode(const std::string &path) {
    struct stat is = {};
    EXPECT_EQ(stat(path.c_str(), &is), 0) << path;
    return is.st_mode & 07777;
}

// Every verb that writes a file: its arguments before the output, and those behind it.
const std::pair<Strings, Strings> kVerbs[] = {
    {{"export", "--perfetto"}, {}}, {{"export", "--jsonl"}, {}},
    {{"export", "--sqlite"}, {}},   {{"report", "--html"}, {}},
    {{"trim", "--pack", "-o"}, {}}, {{"trim", "--steps", "1", "-o"}, {}},
    {{"import", "-o"}, {}},
};

std::string Copy(const std::string &name, mode_t mode) {
    std::string path = Folder() + "/" + name;
    unlink(path.c_str());
    WriteAll(path, ReadFile(golden));
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
}

std::string Database(const std::string &trace, mode_t mode) {
    std::string path = trace + ".sqlite";
    unlink(path.c_str());
    EXPECT_EQ(Cusplice({"export", "--sqlite", path, trace}).Exit(), 0);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
}

Strings Arguments(const std::pair<Strings, Strings> &verb, const std::string &in,
                  const std::string &out) {
    Strings arguments = verb.first;
    arguments.push_back(out);
    arguments.push_back(in);
    return arguments;
}

TEST(Modes, OutputsHaveTheModeOfTheirInput) {
    const struct {
        mode_t in, mask, out;
    } cases[] = {{0600, 0, 0600}, {0640, 022, 0640}, {0644, 022, 0644}, {0666, 022, 0644},
                 {0660, 0, 0660}, {0644, 077, 0600}, {0755, 022, 0644}, {0444, 022, 0444}};
    std::string out = Folder() + "/out";
    mode_t was = umask(022);
    for (const auto &one : cases) {
        umask(022);
        std::string trace = Copy("in.cst", one.in), database = Database(trace, one.in);
        umask(one.mask);
        for (const auto &verb : kVerbs) {
            unlink(out.c_str());
            Result r = Cusplice(Arguments(verb, verb.first[0] == "import" ? database : trace, out));
            EXPECT_EQ(r.Exit(), 0) << verb.first[0] << r.err;
            EXPECT_EQ(Mode(out), one.out) << verb.first[0] << " " << verb.first[1] << std::oct
                                          << " " << one.in << " " << one.mask;
        }
    }
    umask(was);
}

TEST(Modes, TheInputIsNotReplacedByForceEither) {
    std::string trace = Copy("in.cst", 0600), database = Database(trace, 0600);
    std::string before = ReadFile(trace), before_database = ReadFile(database);
    std::string soft = Folder() + "/link", hard = Folder() + "/hard";
    for (const auto &verb : kVerbs) {
        std::string in = verb.first[0] == "import" ? database : trace;
        unlink(soft.c_str());
        unlink(hard.c_str());
        ASSERT_EQ(symlink(in.c_str(), soft.c_str()), 0);
        ASSERT_EQ(link(in.c_str(), hard.c_str()), 0);
        for (const std::string &out : {in, soft, hard, Folder() + "/./" + in.substr(in.rfind('/'))})
            for (bool force : {false, true}) {
                Strings arguments = Arguments(verb, in, out);
                if (force && verb.first[0] == "trim")
                    continue; // it never replaces a file
                if (force)
                    arguments.insert(arguments.begin() + 1, "--force");
                EXPECT_TRUE(Has(Fails(1, arguments), "is what is read: name another file"))
                    << verb.first[1] << " " << out;
            }
    }
    unlink(hard.c_str());
    EXPECT_EQ(ReadFile(trace), before);
    EXPECT_EQ(ReadFile(database), before_database);
}

// What a killed program left is FILE.partial, and a trim of it to FILE would begin with that name.
TEST(Modes, APartialFileIsAnInputToo) {
    std::string out = Folder() + "/whole.cst", partial = out + ".partial";
    unlink(out.c_str());
    WriteAll(partial, ReadFile(golden));
    EXPECT_TRUE(Has(Fails(1, {"trim", "--pack", "-o", out, partial}),
                    out + ": it, or " + out + ".partial, is what is read: name another file"));
    EXPECT_EQ(ReadFile(partial), ReadFile(golden));
    EXPECT_NE(access(out.c_str(), F_OK), 0);
    unlink(partial.c_str());
}

TEST(Modes, TwoOutputsAreNotOneFile) {
    std::string out = Folder() + "/twice";
    unlink(out.c_str());
    for (const std::string &other :
         {out, Folder() + "/../" + Folder().substr(Folder().rfind('/')) + "/twice"})
        EXPECT_TRUE(
            Has(Fails(2, {"export", "--force", "--perfetto", out, "--sqlite", other, golden}),
                "named twice"))
            << other;
    EXPECT_TRUE(
        Has(Fails(2, {"export", "--perfetto", "-", "--jsonl", "-", golden}), "-: named twice"));
    EXPECT_NE(access(out.c_str(), F_OK), 0);
}

// The old stats file goes before the program starts: it must not be the program, nor a file that
// the settings come from.
TEST(Modes, ARunWritesOverNothingThatItReads) {
    const Environment kFine = {{"FAKE_SAYS", "loaded,on,exit 5 0"}};
    std::string config = Write("in.conf", "[rules]\neager = p1*\n");
    std::string program = Write("program.sh", "#!/bin/sh\necho ran\n");
    std::string soft = Folder() + "/soft.conf", hard = Folder() + "/hard.sh";
    ASSERT_EQ(chmod(program.c_str(), 0755), 0);
    unlink(soft.c_str());
    unlink(hard.c_str());
    ASSERT_EQ(symlink(config.c_str(), soft.c_str()), 0);
    ASSERT_EQ(link(program.c_str(), hard.c_str()), 0);
    for (const char *verb : {"run", "verify", "record"})
        for (const std::string &out : {config, program, soft, hard})
            for (std::string key : {"stats", "log_file", "why_file"}) {
                Strings arguments = {verb, "-c", config, "--set", key + "=" + out, "--", program};
                if (verb == std::string("record"))
                    arguments.insert(arguments.begin() + 1, {"-o", Folder() + "/none.cst"});
                Result r = Cusplice(arguments, kFine);
                EXPECT_EQ(r.Exit(), 125) << r.err;
                EXPECT_EQ(r.out, "") << "it ran";
                EXPECT_TRUE(Has(r.err, "cusplice: " + key + " = " + out +
                                           ": it is what is read: name another file"))
                    << r.err;
            }
    Result r = Cusplice({"run", "-c", config, "--stats", program, "--", "program.sh"},
                        {{"FAKE_SAYS", "loaded,on,exit 5 0"}, {"PATH", Folder() + ":/bin"}});
    EXPECT_EQ(r.Exit(), 125) << "found in PATH: " << r.err;
    EXPECT_EQ(ReadFile(program), "#!/bin/sh\necho ran\n");
    EXPECT_EQ(ReadFile(config), "[rules]\neager = p1*\n");
    std::string out = Folder() + "/both";
    r = Cusplice({"record", "-o", out, "--stats", Folder() + "/./both", "--", program}, kFine);
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "stats names this file too")) << r.err;
    // What is neither is replaced as before.
    std::string old = Write("of_before.json", "{}");
    EXPECT_EQ(Cusplice({"run", "--stats", old, "--", Target()}, kFine).Exit(), 0);
}

// A trace that does not say by which settings it was recorded has those of here and now as its
// baseline. What -c asks about is no part of them.
TEST(WhatIf, FilesThatAreAskedAboutAreNotInTheBaseline) {
    std::string database = Folder() + "/asked.sqlite", trace = Folder() + "/asked.cst";
    ASSERT_EQ(Cusplice({"export", "--sqlite", database, golden}).Exit(), 0);
    ASSERT_EQ(Cusplice({"import", "-o", trace, database}).Exit(), 0);
    std::string one = Write("asked1.conf", "[rules]\neager = *\n");
    std::string two = Write("asked2.conf", "[rules]\ngraph = *\n");
    sim::Json none = Parse(Says({"whatif", "--format", "json", trace}));
    sim::Json eager = Parse(Says({"whatif", "--format", "json", "-c", one, trace}));
    sim::Json graph = Parse(Says({"whatif", "--format", "json", "-c", one, "-c", two, trace}));
    EXPECT_EQ(none.Number("baseline.eager_by.rule"), 0);
    EXPECT_EQ(eager.Number("baseline.eager_by.rule"), 0);
    EXPECT_GT(eager.Number("whatif.eager_by.rule"), 0);
    EXPECT_EQ(graph.Number("whatif.eager_by.rule"), 0) << "the later file is stronger";
}

} // namespace
