"""Small C libraries that the distribution packages: a few headers, and a static archive where there is code.

Only the named headers are linked into the repository. Pointing a repository at the whole of /usr/include would put
that folder in front of the compiler's own search path, which breaks the C++ standard library's headers.
"""

_HEADER_DIRS = ["/usr/include", "/usr/local/include"]
_ARCHIVE_DIRS = [
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
]

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "{name}",
    srcs = {archives},
    hdrs = {headers},
    includes = ["include"],
)
"""

def _find(ctx, dirs, file):
    for dir in dirs:
        path = ctx.path(dir + "/" + file)
        if path.exists:
            return path
    fail("%s was found in none of %s: install the package %s (tools/setup does)" % (file, dirs, ctx.attr.package))

def _archive_dirs(ctx):
    """Debian's gcc says in which folder its archives are: there may be one for each machine. Clang does not know the option, and is this machine's."""
    for compiler in [ctx.os.environ.get("CC", "gcc"), "gcc"]:
        made = ctx.execute([compiler, "-print-multiarch"])
        if made.return_code == 0 and made.stdout.strip():
            return ["/usr/lib/" + made.stdout.strip()] + _ARCHIVE_DIRS
    return _ARCHIVE_DIRS

def _system_library_impl(ctx):
    headers = []
    for header in ctx.attr.headers:
        ctx.symlink(_find(ctx, _HEADER_DIRS, header), "include/" + header)
        headers.append("include/" + header)
    archives = []
    if ctx.attr.archive:
        ctx.symlink(_find(ctx, _archive_dirs(ctx), ctx.attr.archive), ctx.attr.archive)
        archives.append(ctx.attr.archive)
    ctx.file("BUILD", _BUILD.format(name = ctx.name, archives = archives, headers = headers))

system_library = repository_rule(
    implementation = _system_library_impl,
    doc = "A cc_library named like the repository, from the distribution's headers and static archive.",
    attrs = {
        "archive": attr.string(doc = "File name of a static archive of position-independent code, or empty."),
        "headers": attr.string_list(mandatory = True),
        "package": attr.string(mandatory = True, doc = "The Debian package, for the error message."),
    },
    environ = ["CC"],
    local = True,
)
