// Installs the launcher into its own folder (bin/cusplice, lib/libcusplice.so), runs it, and keeps
// everything that it prints and does.
#ifndef CUSPLICE_TESTS_LAUNCHER_LAUNCHER_H
#define CUSPLICE_TESTS_LAUNCHER_LAUNCHER_H

#include <stdlib.h>

#include <map>
#include <string>
#include <vector>

#include "tests/text.h"

struct Result {
    int status = 0;    // of waitpid
    long peak_kib = 0; // of memory, at most
    std::string out, err;
    int Exit() const; // exit status, or -signal
};

using Strings = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

// Absolute paths; the files are there.
std::string Folder();       // for files of the test
std::string Target();       // tests/launcher/target.c
std::string StaticTarget(); // the same, statically linked
std::string Library();      // the stand-in, as the launcher finds it
std::string Write(const std::string &name,
                  const std::string &text); // into Folder(); returns its path

// Under a sanitizer, whose memory is nobody's to bound?
bool Sanitized();
bool IsSanitizer(const std::string &sanitizer); // asan, ubsan or tsan

// For a test that runs the machine's shell with the library.
#define NEEDS_A_SHELL()                                                                            \
    if (getenv("CUS_TEST_EMULATED"))                                                               \
    GTEST_SKIP() << "the shell here is a program for another kind of processor"

// qemu has no process_vm_readv.
const bool kLacksARead = getenv("CUS_TEST_EMULATED");

// The C library's, of programs of this processor.
#if defined(__aarch64__)
const char kLoader[] = "/lib/ld-linux-aarch64.so.1";
#else
const char kLoader[] = "/lib64/ld-linux-x86-64.so.2";
#endif

// What LD_PRELOAD begins with under ASan, whose runtime insists on being first; "" otherwise.
std::string First();

// Runs `argv` with the environment of this process, less everything of cusplice, with no cache,
// plus `more` ("" unsets).
Result RunProgram(const Strings &argv, const Environment &more = {}, const std::string &input = "");
// The same for the launcher.
Result Cusplice(Strings arguments, const Environment &more = {}, const std::string &input = "");
std::string CuspliceProgram();

// Starts the launcher without waiting; *out_fd reads its stdout.
int Start(Strings arguments, int *out_fd);

#endif
