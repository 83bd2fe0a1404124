// Promise: files that verbs make from a trace are as private as the trace, and never replace it.
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
    std::string link = Folder() + "/link";
    unlink(link.c_str());
    for (const auto &verb : kVerbs) {
        if (verb.first[0] == "trim")
            continue; // it replaces nothing
        std::string in = verb.first[0] == "import" ? database : trace;
        unlink(link.c_str());
        ASSERT_EQ(symlink(in.c_str(), link.c_str()), 0);
        for (const std::string &out : {in, link}) {
            Strings arguments = Arguments(verb, in, out);
            arguments.insert(arguments.begin() + 1, "--force");
            EXPECT_TRUE(Has(Fails(1, arguments), "it is what is read: name another file"))
                << verb.first[1];
        }
    }
    EXPECT_EQ(ReadFile(trace), before);
    EXPECT_EQ(ReadFile(database), before_database);
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
