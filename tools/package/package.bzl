"""cusplice_package: files of the build, packed by pack.py."""

def _package_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    args = ctx.actions.args()
    args.add(ctx.label.name)
    args.add("--out", out.path)
    args.add("--epoch", ctx.var.get("EPOCH", "0"))
    args.add("--version-file", ctx.file._version)
    inputs = [ctx.file._version]
    for target, place in ctx.attr.files.items():
        mode, path = place.split(" ")
        for file in target.files.to_list():
            inputs.append(file)
            args.add("%s:%s=%s" % (mode, path + file.basename if path.endswith("/") else path, file.path))
    ctx.actions.run(
        executable = ctx.executable._pack,
        arguments = [args],
        inputs = inputs + ctx.files._beside,
        outputs = [out],
        mnemonic = "Pack",
        progress_message = "packing the %s" % ctx.label.name,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]))]

cusplice_package = rule(
    implementation = _package_impl,
    doc = "A folder with one file: the tarball, wheel, deb or rpm, as the rule's name says.",
    attrs = {
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            mandatory = True,
            doc = "Mode and path below the prefix.",
        ),
        "_beside": attr.label_list(
            allow_files = True,
            default = [
                "//:LICENSE",
                ":elf.py",
                ":install.sh",
                ":python",
                ":uninstall.sh",
            ],
        ),
        "_pack": attr.label(
            allow_single_file = True,
            cfg = "exec",
            default = ":pack.py",
            executable = True,
        ),
        "_version": attr.label(
            allow_single_file = True,
            default = "//shim/base:version.h",
        ),
    },
)
