// A folder that every user may enter, with the library, the simulator, programs, the launcher and
// the player (Bazel's lie below /root). Runs programs there plain or preloaded.
#ifndef CUSPLICE_TESTS_SECURITY_STAGE_H
#define CUSPLICE_TESTS_SECURITY_STAGE_H

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "tests/sim/child.h"
#include "tests/sim/json.h"

namespace security {

using sim::Child;
using sim::Result;
using Strings = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

// Two users without an account: the one who is attacked, where that is not root, and the other.
constexpr unsigned kUser = 12345, kOther = 12346;
constexpr int kHangs_s = 10; // nothing here takes a tenth of it

// May this test be several users? With what to say where not.
bool IsRoot();
#define NEEDS_ROOT()                                                                               \
    if (!security::IsRoot())                                                                       \
    GTEST_SKIP() << "two users: only root can run programs as somebody else"

// Below /tmp, 0755, made when it is first asked for and removed when the tests have ended.
std::string Staged(const std::string &name); // bin/cusplice, lib/libcusplice.so, sim, ...
// A fresh folder of that user's (0: of this test's), 0755.
std::string Folder(unsigned user = 0);
// A file there, or anywhere: 0644, of that user's. Returns its path.
std::string Write(const std::string &path, const std::string &text, unsigned user = 0,
                  mode_t mode = 0644);
void Link(const std::string &path, const std::string &to, unsigned user = 0);

// A program of the stage by its name, with its arguments; as it is.
Child Plain(Strings command);
// The same with the library. It keeps files of nobody: `home` has no configuration.
Child Preloaded(Strings command, const Environment &more = {}, unsigned user = 0);
// The launcher, with the simulator at hand.
Child Launcher(Strings arguments, const Environment &more = {}, unsigned user = 0);

// Runs it, and waits until it has ended or hangs.
Result Ran(const Child &child);

// Few launches, the same output each time.
Strings Small();
// What Small() writes on stdout plain.
const std::string &SmallSays();

// It ended by itself, in time and within memory: not by a signal.
testing::AssertionResult Ended(const Result &result);
// The program did what it does plain.
testing::AssertionResult AsPlain(const Result &result);
// The launcher said no, in one line that has `part`.
testing::AssertionResult Refused(const Result &result, const std::string &part);

// Of the file itself, not of what it leads to. False where there is nothing.
bool Is(const std::string &path, struct stat *info);
unsigned ModeOf(const std::string &path); // 0 where there is nothing

} // namespace security

#endif
