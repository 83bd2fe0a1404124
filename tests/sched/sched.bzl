"""The library with a point in front of each atomic that orders, with checks of itself, and with rules that CUSPLICE_MUTATE takes out."""

load("//tests/order:order.bzl", "NO_SANITIZER")

# The library with points is a sanitizer's build of its own; what asks for it is left out of others, and of builds for AArch64.
ONLY_PLAIN = NO_SANITIZER + select({
    "//tests/sched:aarch64": ["//tests/sched:x86_build"],
    "//conditions:default": [],
})

def _points(settings, attr):
    return {"//command_line_option:copt": settings["//command_line_option:copt"] + [
        "-fsanitize=thread",
        "-DCUS_POINTS",
        "-DCUS_CHECKS",
        "-DCUS_MUTATE",
        "-Wno-tsan",
    ]}

_with_points = transition(
    implementation = _points,
    inputs = ["//command_line_option:copt"],
    outputs = ["//command_line_option:copt"],
)

def _library_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.files.library[0])
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

library_with_points = rule(
    implementation = _library_impl,
    attrs = {
        "library": attr.label(allow_files = True, cfg = _with_points),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
