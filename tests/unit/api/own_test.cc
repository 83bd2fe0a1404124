// Promise: shim/api/own.def holds exactly the driver calls that the library makes for itself. The
// test reads the sources without comments and strings.
#include <gtest/gtest.h>

#include <glob.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

enum class By { kDriver, kHook, kKeep };

struct Call {
    std::string symbol, waits, measured, when;
    By by;
};

const std::vector<Call> kCalls = {
#define IN_DRIVER(symbol, waits, measured, when) {#symbol, #waits, measured, when, By::kDriver},
#define CUS_OWN_NEEDED IN_DRIVER
#define CUS_OWN_OPTIONAL IN_DRIVER
#define CUS_OWN_VERIFY IN_DRIVER
#define CUS_OWN_HOOK(symbol, waits, measured, when) {#symbol, #waits, measured, when, By::kHook},
#define CUS_OWN_KEEP(symbol, waits, measured, when) {#symbol, #waits, measured, when, By::kKeep},
#include "shim/api/own.def"
#undef IN_DRIVER
};

using Names = std::map<std::string, std::string>; // symbol, a place where it is called

// Comments and texts as blanks; lines stay where they are.
std::string Code(const std::string &text) {
    std::string code = text;
    for (size_t i = 0; i < code.size();) {
        size_t end = i + 1;
        if (code.compare(i, 2, "/*") == 0)
            end = code.find("*/", i + 2) + 2;
        else if (code.compare(i, 2, "//") == 0)
            end = code.find('\n', i);
        else if (code[i] == '"' && (i == 0 || code[i - 1] != '\''))
            for (; end < code.size() && code[end++] != '"';)
                end += code[end - 1] == '\\';
        if (end > i + 1)
            for (size_t at = i; at < end && at < code.size(); at++)
                code[at] = code[at] == '\n' ? '\n' : ' ';
        i = end;
    }
    return code;
}

// `call`: what a call looks like, with the symbol as its last group. `own`: how the function of a
// symbol's own row begins; a call of the same symbol in it passes the program's on.
void Find(const std::string &where, const std::string &text, const std::regex &call,
          const std::regex &own, Names *names) {
    std::istringstream lines(Code(text));
    std::string line, inside;
    for (unsigned n = 1; std::getline(lines, line); n++) {
        std::smatch match;
        if (!line.empty() && isalpha((unsigned char)line[0]))
            inside = std::regex_search(line, match, own) ? match[1].str() : "";
        for (std::sregex_iterator it(line.begin(), line.end(), call), end; it != end; ++it) {
            std::string symbol = it->str(it->size() - 1);
            if (symbol != inside)
                names->emplace(symbol, where + ":" + std::to_string(n));
        }
    }
}

Names InFolders(const std::vector<std::string> &folders, const char *call,
                const char *own = "^(?!)()") {
    Names names;
    for (const std::string &folder : folders) {
        glob_t found;
        EXPECT_EQ(glob(("shim/" + folder + "/*.[ch]").c_str(), 0, nullptr, &found), 0) << folder;
        for (size_t i = 0; i < found.gl_pathc; i++) {
            std::ifstream file(found.gl_pathv[i]);
            std::string text(std::istreambuf_iterator<char>(file), {});
            Find(found.gl_pathv[i], text, std::regex(call), std::regex(own), &names);
        }
        globfree(&found);
    }
    return names;
}

// A parameter of a macro (`symbol`, `name`) is no name of a call: such macros are wrappers.
const char kReal[] = "CUS_REAL\\((cu[A-Z]\\w*)\\)";
const char kWrapper[] = "^CUS_WRAP\\((cu\\w+)";
const char kKept[] = "real(?:\\.|->)(cu[A-Z]\\w*)";
const char kKeeper[] = "^CUresult cus_keep_(cu\\w+)\\(";
const char kMember[] = "(?:\\.|->)(cu[A-Z]\\w*)";
const char kDirect[] = "(?:^|[^\\w.>])(cu[A-Z]\\w*)\\s*\\(";

bool Has(const std::string &symbol) {
    for (const Call &call : kCalls)
        if (call.symbol == symbol)
            return true;
    return false;
}

void AllHave(const Names &names) {
    for (const auto &name : names)
        EXPECT_TRUE(Has(name.first))
            << name.second << ": " << name.first << " is no row of shim/api/own.def";
}

TEST(Own, EveryCallOfTheHooksForThemselvesIsInTheTable) {
    Names names = InFolders({"hook"}, kReal, kWrapper);
    EXPECT_GE(names.size(), 6u);
    AllHave(names);
}

TEST(Own, EveryCallOfAReplayableRecordingIsInTheTable) {
    Names names = InFolders({"keep"}, kKept, kKeeper);
    EXPECT_GE(names.size(), 20u);
    AllHave(names);
}

// The library exports these names: such a call would go through its own hooks.
TEST(Own, NothingIsCalledByItsExportedName) {
    for (const auto &name :
         InFolders({"stream", "graph", "verify", "plan", "keep", "hook"}, kDirect))
        ADD_FAILURE() << name.second << ": " << name.first << " is called by its exported name";
}

TEST(Own, EveryRowIsCalled) {
    Names driver = InFolders({"stream", "graph", "verify"}, kMember);
    Names hook = InFolders({"hook"}, kReal, kWrapper), keep = InFolders({"keep"}, kKept, kKeeper);
    for (const Call &call : kCalls)
        EXPECT_TRUE((call.by == By::kDriver ? driver
                     : call.by == By::kHook ? hook
                                            : keep)
                        .count(call.symbol))
            << call.symbol << ": nobody makes this call";
}

TEST(Own, EveryRowIsThereOnceAndSaysWhatItIsFor) {
    std::set<std::string> seen;
    for (const Call &call : kCalls) {
        EXPECT_TRUE(seen.insert(call.symbol).second) << call.symbol << " is there twice";
        EXPECT_GT(call.when.size(), 7u) << call.symbol;
        bool waits = call.waits == "VERIFY" || call.waits == "RECORD";
        EXPECT_TRUE(waits || call.waits == "RETURNS" || call.waits == "ROOM") << call.symbol;
        EXPECT_EQ(call.measured.empty(), waits) << call.symbol;
        EXPECT_EQ(call.by == By::kKeep, call.waits == "RECORD") << call.symbol;
    }
}

TEST(Finder, TellsAnOwnCallFromOneThatIsPassedOn) {
    Names names;
    Find("f.c",
         "CUS_WRAP(cuInit, (unsigned flags)) {\n    return CUS_REAL(cuInit)(flags);\n}\n"
         "int f(void) {\n    /* CUS_REAL(cuMemFree_v2) */\n"
         "    return CUS_REAL(cuInit)(0) + text(\"CUS_REAL(cuCtxDetach)\"); // CUS_REAL(cuA)\n}\n"
         "#define PASS(symbol) CUS_REAL(symbol)(0)\n",
         std::regex(kReal), std::regex(kWrapper), &names);
    EXPECT_EQ(names, (Names{{"cuInit", "f.c:6"}}));
    names.clear();
    Find("k.c", "int g(void) { return cuMemFree_v2(0) + x->cuInit(0) + cus_cuInit(0); }\n",
         std::regex(kDirect), std::regex("^(?!)()"), &names);
    EXPECT_EQ(names, (Names{{"cuMemFree_v2", "k.c:1"}}));
}

} // namespace
