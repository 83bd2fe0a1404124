"""The commit of a build: a release has it (--config=stamped), any other build says "unknown", so that a commit rebuilds nothing."""

def _commit_header(ctx):
    out = ctx.outputs.out
    script = 'commit=unknown; [ -z "$2" ] || commit=$(sed -n "s/^STABLE_CUSPLICE_COMMIT //p" "$2"); ' + \
             "echo \"#define CUSPLICE_COMMIT \\\"${commit:-unknown}\\\"\" >\"$1\""
    status = [ctx.info_file] if ctx.attr.stamped else []
    ctx.actions.run_shell(
        inputs = status,
        outputs = [out],
        command = script,
        arguments = [out.path] + [file.path for file in status] + ([] if status else [""]),
        mnemonic = "Commit",
    )
    return [DefaultInfo(files = depset([out]))]

_header = rule(
    implementation = _commit_header,
    attrs = {
        "out": attr.output(mandatory = True),
        "stamped": attr.bool(mandatory = True),
    },
)

def commit_header(name, out):
    _header(
        name = name,
        out = out,
        stamped = select({
            "//tools/bazel:stamped": True,
            "//conditions:default": False,
        }),
    )
