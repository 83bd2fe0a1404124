/*
 * Promise: the class column of shim/api/cuda_api.def agrees with real drivers. A call that passes
 * while ops are deferred does not wait for the GPU, holds no lock that a launch needs, and spoils
 * no capture; nor do the library's calls during builds. A GETTER row waits beside a pageable copy
 * alone, and what the library defers can be issued meanwhile. GPUs gave the tables gate-*.csv
 * (README.md); gate_exceptions.def lists what may deviate.
 */
#include <gtest/gtest.h>

#include <glob.h>

#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "shim/api/api.h"
#include "tests/text.h"

namespace {

const char *const kColumns[] = {"plain", "pageable", "capture", "launch"};
const char kHead[] = "symbol,class,plain,pageable,capture,launch,note";

struct Line {
    std::string name, kind, cell[4], note;
    bool Called() const { return cell[0] != "-"; }
};

struct Exception {
    const char *symbol, *column, *value, *reason;
};

const std::vector<Exception> kExceptions = {
#define GATE_EXCEPTION(symbol, column, value, reason) {symbol, column, value, reason},
#include "tests/gpu/gate_exceptions.def"
};

struct OwnCall {
    const char *symbol, *waits, *measured;
    bool Returns() const { return std::string(waits) == "RETURNS"; }
    /* Where a pool must grow it waits, which room.c sees to; else it must return. */
    bool NeedsRoom() const { return std::string(waits) == "ROOM"; }
};

const std::vector<OwnCall> kOwn = {
#define OWN_CALL(symbol, waits, measured, when) {#symbol, #waits, measured},
#define CUS_OWN_NEEDED OWN_CALL
#define CUS_OWN_OPTIONAL OWN_CALL
#define CUS_OWN_VERIFY OWN_CALL
#define CUS_OWN_HOOK OWN_CALL
#define CUS_OWN_KEEP OWN_CALL
#include "shim/api/own.def"
#undef OWN_CALL
};

/* Graphs for which there is no room: what room.c is there for. */
const char kGrowth[] = "own:growth";

/* What the watchdog may have to issue while a GETTER row waits: launches, launches of graphs, event
 * records and frees in stream order. */
const char *const kIssued[] = {"own:eager",        "own:launch",
                               "own:launch-kinds", "own:patched-relaunch-200-side",
                               "cuEventRecord",    "cuEventRecordWithFlags",
                               "cuMemFreeAsync"};

/* The rows that drivers of CUDA 13.0 lack. */
const std::set<std::string> &Newer() {
    static const std::set<std::string> names = {
#define CUS_API(...)
#define CUS_API_NEWER(symbol, ...) #symbol,
#include "shim/api/cuda_api.def"
    };
    return names;
}

/* The rows that the table of own calls names, each once. */
std::set<std::string> Measured(const OwnCall &call) {
    std::istringstream words(call.measured);
    return {std::istream_iterator<std::string>(words), {}};
}

std::set<std::string> OwnRows() {
    std::set<std::string> rows;
    for (const OwnCall &call : kOwn)
        for (const std::string &row : Measured(call))
            if (row != call.symbol)
                rows.insert(row);
    return rows;
}

/* True where the hook lets the call through while launches may be deferred. */
bool GoesThrough(const cus_api_row &row) {
    return row.kind == CUS_CLASS_PASS || row.kind == CUS_CLASS_SHOWS ||
           row.kind == CUS_CLASS_EVENT || row.kind == CUS_CLASS_TOUCH ||
           row.kind == CUS_CLASS_SAME || row.act == CUS_ACT_POLL || row.act == CUS_ACT_END;
}

bool IsOwn(const std::string &name) {
    for (const OwnCall &call : kOwn)
        if (name == call.symbol)
            return call.Returns() || call.NeedsRoom();
    return false;
}

/* Reads a table, and says what is wrong with it and with the classes. `used` collects the
 * exceptions that were needed. */
class Judge {
  public:
    Judge(const std::string &text, const std::vector<Exception> &exceptions)
        : exceptions_(exceptions) {
        Read(text);
        for (int i = 0; i < CUS_API_ROWS; i++)
            Row(cus_api_rows[i]);
        for (const OwnCall &call : kOwn)
            Named(call);
        for (const std::string &name : OwnRows())
            Own(name);
        for (const char *name : kIssued)
            Issued(name);
        Growth();
    }
    const std::vector<std::string> &Complaints() const { return complaints_; }
    const std::set<const Exception *> &Used() const { return used_; }

  private:
    void Complain(const std::string &text) { complaints_.push_back(text); }

    void Read(const std::string &text) {
        std::istringstream stream(text);
        std::string line;
        bool head = false;
        while (std::getline(stream, line)) {
            if (line.empty() || line[0] == '#')
                continue;
            if (!head) {
                head = line == kHead;
                if (!head)
                    Complain("the first line is not " + std::string(kHead));
                continue;
            }
            Line row;
            std::istringstream fields(line);
            std::getline(fields, row.name, ',');
            std::getline(fields, row.kind, ',');
            for (std::string &cell : row.cell)
                std::getline(fields, cell, ',');
            std::getline(fields, row.note);
            if (!lines_.emplace(row.name, row).second)
                Complain(row.name + " is there twice");
            else
                Words(row);
        }
    }

    void Words(const Line &row) {
        static const std::set<std::string> kWords = {"returned", "waited", "refused", "invalidated",
                                                     "locked",   "hung",   "died",    "-"};
        for (const std::string &cell : row.cell) {
            std::istringstream words(cell);
            std::string word;
            do {
                std::getline(words, word, '+');
                if (!kWords.count(word))
                    Complain(row.name + ": no such word: " + word);
            } while (!words.eof());
        }
        if (!row.Called() && row.note.compare(0, 12, "not called: ") != 0)
            Complain(row.name + " was not called, and nothing says why");
        if (!row.Called() && row.note.size() < 20)
            Complain(row.name + " was not called for no reason");
    }

    /* All four columns, or all but the one about captures. */
    void MustReturn(const Line &line, const char *why, bool capture) {
        for (int c = 0; c < 4; c++) {
            if (line.cell[c] == "returned" || (c == 2 && !capture))
                continue;
            if (!Excepted(line.name, kColumns[c], line.cell[c]))
                Complain(line.name + " (" + why + "): " + kColumns[c] + " is " + line.cell[c]);
        }
    }

    bool Excepted(const std::string &name, const std::string &column, const std::string &value) {
        for (const Exception &e : exceptions_) {
            if (name == e.symbol && (column == e.column || std::string(e.column) == "any") &&
                value == e.value) {
                used_.insert(&e);
                return true;
            }
        }
        return false;
    }

    void Row(const cus_api_row &row) {
        auto found = lines_.find(row.name);
        if (found == lines_.end()) {
            if (!Newer().count(row.name))
                Complain(std::string(row.name) + " is not in the table");
            else if (GoesThrough(row) || row.kind == CUS_CLASS_GETTER || IsOwn(row.name))
                Complain(std::string(row.name) + ": no driver was asked whether it waits");
            return;
        }
        const Line &line = found->second;
        if (!line.Called()) {
            if (row.kind == CUS_CLASS_GETTER)
                Complain(line.name + " (GETTER) was not called");
            if (IsOwn(row.name))
                MustReturn(line, "the library calls it", false);
            return;
        }
        if (row.kind == CUS_CLASS_GETTER)
            Getter(line);
        else if (GoesThrough(row))
            MustReturn(line, "it goes through", true);
        else if (IsOwn(row.name))
            MustReturn(line, "the library calls it", false);
    }

    /* Beside a pageable copy it waits, but not "waited+locked": else it is no GETTER but a BARRIER,
     * or a PASS. */
    void Getter(const Line &line) {
        for (int c = 0; c < 4; c++)
            if (line.cell[c] != (c == 1 ? "waited" : "returned"))
                Complain(line.name + " (GETTER): " + kColumns[c] + " is " + line.cell[c]);
    }

    /* Issued beside a call that waits for a pageable copy. */
    void Issued(const std::string &name) {
        auto found = lines_.find(name);
        if (found == lines_.end())
            Complain(name + " is not in the table");
        else if (found->second.cell[1] != "returned")
            Complain(name + " (issued while a GETTER waits): pageable is " + found->second.cell[1]);
    }

    void Named(const OwnCall &call) {
        if ((call.Returns() || call.NeedsRoom()) && Measured(call).empty())
            Complain(std::string(call.symbol) + ": own.def names no row that measured it");
    }

    void Own(const std::string &name) {
        auto found = lines_.find(name);
        if (found == lines_.end())
            Complain(name + " is not in the table");
        else
            MustReturn(found->second, "own.def says so", true);
    }

    void Growth() {
        auto found = lines_.find(kGrowth);
        if (found == lines_.end())
            Complain(std::string(kGrowth) + " is not in the table");
        else if (found->second.cell[0].compare(0, 6, "waited") != 0 &&
                 !Excepted(kGrowth, kColumns[0], found->second.cell[0]))
            Complain(std::string(kGrowth) + ": plain is " + found->second.cell[0] +
                     ": this driver makes its pools larger without waiting, and needs no rule G5");
    }

    const std::vector<Exception> &exceptions_;
    std::map<std::string, Line> lines_;
    std::vector<std::string> complaints_;
    std::set<const Exception *> used_;
};

std::vector<std::string> Tables() {
    std::vector<std::string> paths;
    glob_t found;
    if (glob("tests/gpu/gate-*.csv", 0, nullptr, &found) == 0)
        paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    return paths;
}

/* A table in which everything is as it should be. */
std::string Fine() {
    std::string text = std::string(kHead) + "\n";
    for (int i = 0; i < CUS_API_ROWS; i++)
        text +=
            std::string(cus_api_rows[i].name) + (cus_api_rows[i].kind == CUS_CLASS_GETTER
                                                     ? ",X,returned,waited,returned,returned,\n"
                                                     : ",X,returned,returned,returned,returned,\n");
    for (const std::string &name : OwnRows())
        text += name + ",OWN,returned,returned,returned,returned,\n";
    return text + kGrowth + ",DEEP,waited,waited,waited,waited,\n";
}

std::string With(const std::string &name, const std::string &rest) {
    std::string text = Fine();
    size_t at = text.find("\n" + name + ",") + 1;
    return text.replace(at, text.find('\n', at) - at, name + ",X," + rest);
}

std::vector<std::string> Complaints(const std::string &text) {
    return Judge(text, {}).Complaints();
}

using Strings = std::vector<std::string>;

TEST(GateTable, ClassesAgreeWithWhatDriversDo) {
    ASSERT_FALSE(Tables().empty());
    std::set<const Exception *> used;
    for (const std::string &path : Tables()) {
        Judge judge(ReadFile(path), kExceptions);
        for (const std::string &complaint : judge.Complaints())
            ADD_FAILURE() << path << ": " << complaint;
        used.insert(judge.Used().begin(), judge.Used().end());
    }
    for (const Exception &e : kExceptions) {
        EXPECT_TRUE(used.count(&e)) << "no table needs the exception of " << e.symbol;
        EXPECT_GT(std::string(e.reason).size(), 20u) << e.symbol;
    }
}

TEST(GateJudge, TakesATableWithoutFault) {
    EXPECT_EQ(Complaints(Fine()), Strings{});
}

TEST(GateJudge, ACallThatWaitsMustNotPass) {
    EXPECT_EQ(Complaints(With("cuEventDestroy_v2", "waited,returned,returned,returned,")),
              Strings{"cuEventDestroy_v2 (it goes through): plain is waited"});
    EXPECT_EQ(Complaints(With("cuEventDestroy_v2", "returned,waited,returned,returned,")),
              Strings{"cuEventDestroy_v2 (it goes through): pageable is waited"});
    EXPECT_EQ(Complaints(With("cuEventDestroy_v2", "returned,returned,returned,returned+locked,")),
              Strings{"cuEventDestroy_v2 (it goes through): launch is returned+locked"});
    EXPECT_EQ(Complaints(With("cuEventDestroy_v2", "died,returned,returned,returned,")),
              Strings{"cuEventDestroy_v2 (it goes through): plain is died"});
}

TEST(GateJudge, ACallThatSpoilsACaptureMustNotPass) {
    for (const char *cell :
         {"returned+refused", "returned+invalidated", "returned+refused+invalidated"})
        EXPECT_EQ(Complaints(With("cuMemGetInfo_v2",
                                  std::string("returned,returned,") + cell + ",returned,")),
                  Strings{std::string("cuMemGetInfo_v2 (it goes through): capture is ") + cell});
}

// HAZARDS F13.
TEST(GateJudge, AGetterWaitsBesideAPageableCopyAlone) {
    for (const char *cells :
         {"waited,waited,returned,returned,", "returned,returned,returned,returned,",
          "returned,waited+locked,returned,returned,", "returned,waited,returned+refused,returned,",
          "returned,waited,returned,returned+locked,", "-,-,-,-,not called: for a good reason"})
        EXPECT_EQ(Complaints(With("cuCtxGetLimit", cells)).size(), 1u) << cells;
    EXPECT_EQ(Complaints(With("cuCtxGetLimit", "returned,waited+locked,returned,returned,")),
              Strings{"cuCtxGetLimit (GETTER): pageable is waited+locked"});
}

TEST(GateJudge, WhatIsDeferredCanBeIssuedWhileAGetterWaits) {
    EXPECT_EQ(Complaints(With("cuEventRecord", "returned,waited,returned,returned,")),
              (Strings{"cuEventRecord (the library calls it): pageable is waited",
                       "cuEventRecord (issued while a GETTER waits): pageable is waited"}));
    for (const char *name : kIssued)
        EXPECT_NE(Complaints(With(name, "returned,waited,returned,returned,")), Strings{}) << name;
}

TEST(GateJudge, WhatIsFlushedForMayWait) {
    EXPECT_EQ(
        Complaints(With("cuMemFree_v2", "waited,waited,returned+refused+invalidated,waited,")),
        Strings{});
}

TEST(GateJudge, WhatIsSetOrTouchedAgainGoesThrough) {
    for (const char *name : {"cuFuncGetAttribute", "cuFuncSetAttribute", "cuStreamSetAttribute",
                             "cuEventQuery", "cuStreamEndCapture"})
        EXPECT_EQ(Complaints(With(name, "returned,waited,returned,returned,")).size(), 1u) << name;
}

// HAZARDS A17.
TEST(GateJudge, OwnCallsMustReturn) {
    EXPECT_EQ(Complaints(With("own:instantiate-100", "waited,waited,waited,waited,")).size(), 4u);
    /* Alone it may be refused in a capture: the library calls it with the mode RELAXED. */
    EXPECT_EQ(Complaints(With("cuGraphInstantiateWithFlags",
                              "returned,returned,returned+refused+invalidated,returned,")),
              Strings{});
    EXPECT_EQ(Complaints(With("cuGraphInstantiateWithFlags", "returned,waited,returned,returned,")),
              Strings{"cuGraphInstantiateWithFlags (the library calls it): pageable is waited"});
    EXPECT_EQ(Complaints(With("cuGraphLaunch", "-,-,-,-,not called: for a good reason")).size(),
              3u);
}

TEST(GateJudge, EveryRowThatAnOwnCallNamesIsThereAndReturns) {
    for (const std::string &name : OwnRows()) {
        for (const char *cells :
             {"waited,returned,returned,returned,", "returned,waited,returned,returned,",
              "returned,returned,returned+refused,returned,",
              "returned,returned,returned,waited+locked,"})
            EXPECT_NE(Complaints(With(name, cells)), Strings{}) << name << ": " << cells;
        std::string text = Fine();
        size_t at = text.find("\n" + name + ",");
        text.erase(at, text.find('\n', at + 1) - at);
        EXPECT_EQ(Complaints(text)[0], name + " is not in the table");
    }
}

TEST(GateJudge, AnOwnCallThatMayWaitIsNotHeldToReturning) {
    EXPECT_EQ(Complaints(With("cuCtxSynchronize", "waited,waited,returned,waited,")), Strings{});
}

TEST(GateJudge, SaysWhereADriverGrowsWithoutWaiting) {
    EXPECT_EQ(Complaints(With(kGrowth, "waited+locked,waited,waited,waited,")), Strings{});
    Strings said = Complaints(With(kGrowth, "returned,returned,returned,returned,"));
    ASSERT_EQ(said.size(), 1u);
    EXPECT_NE(said[0].find("needs no rule G5"), std::string::npos) << said[0];
}

TEST(GateJudge, EveryRowIsThereOrHasItsReason) {
    std::string text = Fine();
    size_t at = text.find("\ncuArrayCreate,");
    text.erase(at, text.find('\n', at + 1) - at);
    EXPECT_EQ(Complaints(text), Strings{"cuArrayCreate is not in the table"});
    EXPECT_EQ(Complaints(With("cuArrayCreate", "-,-,-,-,not called: takes 32-bit addresses")),
              Strings{});
    EXPECT_FALSE(Complaints(With("cuArrayCreate", "-,-,-,-,")).empty());
    EXPECT_FALSE(Complaints(With("cuArrayCreate", "-,-,-,-,not called: ")).empty());
    EXPECT_FALSE(Complaints(With("cuArrayCreate", "ok,returned,returned,returned,")).empty());
    EXPECT_FALSE(Complaints(Fine() + "cuArrayCreate,X,waited,waited,waited,waited,\n").empty());
    EXPECT_FALSE(Complaints("").empty());
}

TEST(GateJudge, AnExceptionCoversItsOwnCellAlone) {
    const std::vector<Exception> one = {
        {"cuMemGetInfo_v2", "capture", "returned+refused", "a reason for the test"}};
    Judge same(With("cuMemGetInfo_v2", "returned,returned,returned+refused,returned,"), one);
    EXPECT_TRUE(same.Complaints().empty());
    EXPECT_EQ(same.Used().size(), 1u);
    Judge worse(With("cuMemGetInfo_v2", "waited,returned,returned+refused,returned,"), one);
    EXPECT_EQ(worse.Complaints().size(), 1u);
    Judge other(With("cuMemGetInfo", "returned,returned,returned+refused,returned,"), one);
    EXPECT_EQ(other.Complaints().size(), 1u);
    EXPECT_TRUE(other.Used().empty());
}

} // namespace
