"""What Debian's bazel-bootstrap 4.2.3 needs so that it never tries to download anything.

Bazel asks for rules_java, rules_proto, rules_cc and remote_coverage_tools at the first cc_library or cc_test. Debian
packages the first two. Its rules_cc is newer than its Bazel and does not load, and nobody packages the coverage
tools, so that those two are stand-ins: the rules are Bazel's own, coverage is not offered.
"""

_CC_RULES = [
    "cc_binary",
    "cc_import",
    "cc_library",
    "cc_libc_top_alias",
    "cc_proto_library",
    "cc_test",
    "cc_toolchain",
    "cc_toolchain_suite",
    "fdo_prefetch_hints",
    "fdo_profile",
    "objc_import",
    "objc_library",
    "propeller_optimize",
]

def _files_impl(ctx):
    ctx.file("WORKSPACE", "")
    for path, text in ctx.attr.files.items():
        ctx.file(path, text)

_files = repository_rule(
    implementation = _files_impl,
    doc = "A repository of a few small files, given as text.",
    attrs = {"files": attr.string_dict(mandatory = True)},
)

def _debian_rules_impl(ctx):
    source = ctx.path("/usr/share/bazel/rules/" + ctx.attr.rules)
    if not source.exists:
        fail("%s is missing: install the Debian package bazel-rules-%s (tools/setup does)" % (source, ctx.attr.rules))
    for entry in source.readdir():
        ctx.symlink(entry, entry.basename)

_debian_rules = repository_rule(
    implementation = _debian_rules_impl,
    doc = "Rules that Debian packages under /usr/share/bazel/rules.",
    attrs = {"rules": attr.string(mandatory = True)},
    local = True,
)

def kind_repositories():
    """Declares the four repositories; the name is what WORKSPACE calls for every kind of Bazel."""
    _debian_rules(name = "rules_java", rules = "java")
    _debian_rules(name = "rules_proto", rules = "proto")
    _files(
        name = "rules_cc",
        files = {
            "BUILD": "",
            "cc/BUILD": "",
            "cc/defs.bzl": "".join(["%s = native.%s\n" % (rule, rule) for rule in _CC_RULES]),
        },
    )
    _files(
        name = "remote_coverage_tools",
        files = {
            "BUILD": "filegroup(name = \"coverage_report_generator\", visibility = [\"//visibility:public\"])\n",
        },
    )
