"""Which Bazel is this? Debian's own build lacks repositories that every other Bazel brings along."""

def _bazel_kind_impl(ctx):
    ctx.file("BUILD", "")
    if ctx.path("/usr/share/bazel/rules/java").exists:
        ctx.symlink(ctx.path(Label("//tools/bazel:debian.bzl")), "repositories.bzl")
    else:
        ctx.file("repositories.bzl", "def kind_repositories():\n    pass\n")

bazel_kind = repository_rule(
    implementation = _bazel_kind_impl,
    doc = "Gives repositories.bzl with kind_repositories(): tools/bazel/debian.bzl on Debian's Bazel, else a macro that does nothing.",
    local = True,
)
