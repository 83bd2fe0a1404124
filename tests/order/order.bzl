"""A test of the order of accesses: sources of the library over the model of memory."""

load("//tools/bazel:copts.bzl", "CUS_COPTS")

# The tests define the functions that a sanitizer's compiler calls.
NO_SANITIZER = select(dict([
    ("//tests/order:" + name, ["//tests/order:plain_build"])
    for name in ["ablate", "asan", "libfuzzer", "mutate", "tsan", "ubsan"]
] + [("//conditions:default", [])]))

# Every source sees order.h first, and tells each plain access. The library's own sources do not know of macros in place of functions.
_COPTS = CUS_COPTS + [
    "-include",
    "tests/order/order.h",
    "-fsanitize=thread",
    "-ffunction-sections",
    "-O1",
    "-U_FORTIFY_SOURCE",
    "-Wno-ignored-qualifiers",
    "-Wno-shadow",
    "-Wno-unused-function",
    "-Wno-unused-value",
]

def order_test(name, parts = [], never = []):
    """`name`_test.c, `parts` and the lock. Functions of `never` are named by these, and no case calls them."""
    native.cc_library(
        name = name + "_lock",
        testonly = True,
        srcs = [
            "//shim/base:clock.c",
            "//shim/base:lock.c",
        ],
        copts = _COPTS + ["-DORDER_IS_LOCK"],
        target_compatible_with = NO_SANITIZER,
        deps = [
            ":code",
            ":order",
        ],
    )
    native.cc_test(
        name = name + "_test",
        size = "medium",
        srcs = [name + "_test.c"] + (["engine.h"] if "engine.c" in parts else []) + parts,
        copts = _COPTS,
        linkopts = ["-Wl,--gc-sections"] + ["-Wl,--defsym,%s=order_never" % function for function in never],
        target_compatible_with = NO_SANITIZER,
        deps = [
            ":code",
            ":order",
            ":%s_lock" % name,
        ],
    )
