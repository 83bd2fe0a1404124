"""Compiler and linker options of the tree; the C++ standard is in .bazelrc, since GoogleTest needs it too."""

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
]

# char has a sign on every machine, as on x86-64.
_EVERYWHERE = _WARNINGS + ["-fsigned-char"]

# For cc_library, cc_binary with C sources.
CUS_COPTS = ["-std=gnu11"] + _EVERYWHERE + ["-Wstrict-prototypes"]

# For C++ sources: kernels compiled for the CPU, examples, what tests share. In C++ a function that bears the name of a struct
# (cus_options) counts as shadowing.
CUS_CXXOPTS = ["-std=c++17"] + _EVERYWHERE + ["-Wno-shadow"]

# For tests, whose compilation is most of a build; with -O1 it takes half as long again. Those that compute much have CUS_CXXOPTS.
# GoogleTest's header is compiled with these, too (googletest.BUILD).
CUS_PRECOMPILED_CXXOPTS = CUS_CXXOPTS + [
    "-O0",
    "-U_FORTIFY_SOURCE",
]

# For tests that depend on GoogleTest: each file begins with that header.
CUS_TEST_CXXOPTS = CUS_PRECOMPILED_CXXOPTS + [
    "-include",
    "precompiled_gtest.hpp",
    "-include",
    "precompiled_gtest_inputs.hpp",
]

# For a shared library that must need libc alone: Bazel adds -lstdc++ -lm at the end of every link, and this drops
# what is not used. An undefined symbol is an error at the link, not in somebody else's process.
CUS_SO_LINKOPTS = [
    "-Wl,--as-needed",
    "-Wl,-z,defs",
]
