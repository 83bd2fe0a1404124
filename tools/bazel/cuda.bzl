"""CUDA programs and device code, compiled by the nvcc of the toolkit behind @cuda.

    load("//tools/bazel:cuda.bzl", "cuda_binary", "cuda_fatbin")

Both are left out of //... on a machine without a toolkit.
"""

load("@cuda//:defs.bzl", "CUDA_COMPATIBLE", "CUDA_LIB_DIR", "CUDA_LINK_DIR", "CUDA_NVCC", "CUDA_STUB_DIR")

# Machine code for each generation up to Hopper (sm_80 serves all of Ampere and Ada), PTX for everything else. A driver that is older than
# the toolkit refuses its PTX, so that PTX alone would shut those GPUs out. With PTX for all but Hopper nvcc takes 0.6 of the time.
_ARCHS = [
    "arch=compute_75,code=[sm_75,compute_75]",
    "arch=compute_80,code=sm_80",
    "arch=compute_90,code=[sm_90,compute_90]",
]

_HOST_SOURCES = (".c", ".cc", ".cpp")

def _context_flags(context):
    """Include paths and defines of a CcCompilationContext, as nvcc understands them."""
    flags = ["-I" + dir for dir in context.quote_includes.to_list() + context.includes.to_list()]
    for dir in context.system_includes.to_list():
        flags += ["-isystem", dir]
    return flags + ["-D" + define for define in context.defines.to_list()]

def _compile(ctx, context, source, out, flags):
    args = ctx.actions.args()
    args.add_all(["-std=c++17", "-O3", "-I."])
    args.add_all(["-gencode=" + arch for arch in _ARCHS])
    args.add_all(_context_flags(context))
    args.add_all(ctx.attr.nvcc_copts)
    args.add_all(flags)
    args.add("-o", out)
    args.add(source)
    ctx.actions.run(
        executable = CUDA_NVCC,
        arguments = [args],
        inputs = depset(ctx.files.srcs, transitive = [context.headers]),
        outputs = [out],
        mnemonic = "Nvcc",
        progress_message = "nvcc %s" % source.short_path,
        use_default_shell_env = True,
    )

def _merged(deps):
    return cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in deps])

def _host_flags(options):
    """Options for the host compiler, one by one: nvcc splits a list at commas."""
    flags = []
    for option in options:
        flags += ["-Xcompiler", option.replace(",", "\\,")]
    return flags

def _link_flags(options):
    """gcc's link options in nvcc's words."""
    flags = []
    for option in options:
        if option.startswith("-Wl,"):
            for part in option[len("-Wl,"):].split(","):
                flags += ["-Xlinker", part]
        elif option.startswith("-l") or option.startswith("-L"):
            flags.append(option)
        else:
            flags += _host_flags([option])
    return flags

def _cuda_binary_impl(ctx):
    info = _merged(ctx.attr.deps)
    context = info.compilation_context
    cpp = ctx.fragments.cpp

    objects = []
    for source in ctx.files.srcs:
        if source.extension == "cu":
            object = ctx.actions.declare_file("_nvcc/%s/%s.o" % (ctx.label.name, source.basename[:-len(".cu")]))
            _compile(ctx, context, source, object, ["-c"] + _host_flags(["-fPIC"] + cpp.copts))
            objects.append(object)

    args = ctx.actions.args()
    args.add("-cudart", ctx.attr.cudart)
    args.add_all(_host_flags(["-pthread"] + cpp.linkopts))
    args.add("-o", ctx.outputs.executable)
    args.add_all(objects)
    inputs = list(objects)
    for linker_input in info.linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            archive = library.pic_static_library or library.static_library
            if not archive:
                fail("%s: only static libraries can be linked in, not %s" % (ctx.label, library))
            inputs.append(archive)
            if library.alwayslink:
                args.add_all(["-Xlinker", "--whole-archive", "-Xlinker", archive.path, "-Xlinker", "--no-whole-archive"])
            else:
                args.add(archive)
        args.add_all(_link_flags(linker_input.user_link_flags))
    args.add_all(_link_flags(ctx.attr.linkopts))
    args.add_all(["-L" + CUDA_LINK_DIR, "-L" + CUDA_STUB_DIR])
    args.add_all(["-Xlinker", "-rpath-link", "-Xlinker", CUDA_LIB_DIR])
    if ctx.attr.rpath:
        args.add_all(["-Xlinker", "-rpath", "-Xlinker", CUDA_LIB_DIR])
    else:
        # nvcc would link device code, of which there is none to link, and note the paths of this machine beside it.
        args.add("-nodlink")
    args.add_all(["-l" + lib for lib in ctx.attr.libs])
    ctx.actions.run(
        executable = CUDA_NVCC,
        arguments = [args],
        inputs = inputs,
        outputs = [ctx.outputs.executable],
        mnemonic = "NvccLink",
        progress_message = "nvcc links %s" % ctx.label,
        use_default_shell_env = True,
    )
    runfiles = ctx.runfiles(files = ctx.files.data)
    for target in ctx.attr.data:
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return [DefaultInfo(
        executable = ctx.outputs.executable,
        files = depset([ctx.outputs.executable]),
        runfiles = runfiles,
    )]

_cuda_binary = rule(
    implementation = _cuda_binary_impl,
    attrs = {
        "cudart": attr.string(default = "shared", values = ["shared", "static", "none"]),
        "data": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "libs": attr.string_list(),
        "linkopts": attr.string_list(),
        "nvcc_copts": attr.string_list(),
        "rpath": attr.bool(default = True),
        "srcs": attr.label_list(allow_files = True),
    },
    executable = True,
    fragments = ["cpp"],
)

def cuda_binary(
        name,
        srcs,
        deps = [],
        cudart = "shared",
        libs = [],
        copts = [],
        nvcc_copts = [],
        linkopts = [],
        data = [],
        rpath = True,
        **kwargs):
    """A program of CUDA C and host code, linked by nvcc.

    Args:
      name: the program.
      srcs: .cu goes to nvcc; .c, .cc, .cpp to the host compiler with the toolkit's headers; headers to both.
      deps: cc_library targets.
      cudart: "shared" (runs on a GPU and on the simulator), "static" (GPU), or "none" (driver API alone).
      libs: libraries of the toolkit by their short name, such as "cublas"; "cuda" links the driver.
      copts: options for the host sources.
      nvcc_copts: options for the .cu sources.
      linkopts: options for the link, in gcc's words.
      data: files that the program needs when it runs.
      rpath: the program finds the toolkit of this machine by itself. Not so what is packed for other machines.
      **kwargs: testonly, tags, visibility.
    """
    host = [src for src in srcs if src.endswith(_HOST_SOURCES)]
    device = [src for src in srcs if not src.endswith(_HOST_SOURCES)]
    if host:
        native.cc_library(
            name = name + "_host",
            srcs = host + [src for src in device if not src.endswith(".cu")],
            copts = copts,
            alwayslink = True,
            linkstatic = True,
            deps = deps + ["@cuda//:headers"],
            **kwargs
        )
    _cuda_binary(
        name = name,
        srcs = device,
        cudart = cudart,
        data = data,
        libs = libs,
        linkopts = linkopts,
        nvcc_copts = nvcc_copts,
        rpath = rpath,
        target_compatible_with = CUDA_COMPATIBLE,
        deps = deps + ([":" + name + "_host"] if host else []) + ["@cuda//:headers"],
        **kwargs
    )

# od is everywhere; the array is aligned as the driver likes its images.
_EMBED = """
set -eu
{
    echo 'extern const unsigned char %s_fatbin[];'
    echo 'extern const unsigned long %s_fatbin_size;'
    echo '__attribute__((aligned(64))) const unsigned char %s_fatbin[] = {'
    od -An -v -tx1 "$1" | sed 's/ \\([0-9a-f][0-9a-f]\\)/0x\\1,/g'
    echo '};'
    echo 'const unsigned long %s_fatbin_size = sizeof(%s_fatbin);'
} > "$2"
"""

def _cuda_fatbin_impl(ctx):
    sources = [source for source in ctx.files.srcs if source.extension == "cu"]
    if len(sources) != 1:
        fail("%s: exactly one .cu file makes a fatbin" % ctx.label)
    _compile(ctx, _merged(ctx.attr.deps).compilation_context, sources[0], ctx.outputs.fatbin, ["--fatbin"])
    symbol = ctx.label.name.replace("-", "_")
    ctx.actions.run_shell(
        command = _EMBED % (symbol, symbol, symbol, symbol, symbol),
        arguments = [ctx.outputs.fatbin.path, ctx.outputs.embed.path],
        inputs = [ctx.outputs.fatbin],
        outputs = [ctx.outputs.embed],
        mnemonic = "Embed",
    )
    return [DefaultInfo(files = depset([ctx.outputs.fatbin]))]

_cuda_fatbin = rule(
    implementation = _cuda_fatbin_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "embed": attr.output(mandatory = True),
        "fatbin": attr.output(mandatory = True),
        "nvcc_copts": attr.string_list(),
        "srcs": attr.label_list(allow_files = True),
    },
)

def cuda_fatbin(name, srcs, deps = [], nvcc_copts = [], **kwargs):
    """Device code of one .cu file: NAME.fatbin, and cc_library NAME_embed that holds it.

    The library defines `const unsigned char NAME_fatbin[]` and `const unsigned long NAME_fatbin_size`.

    Args:
      name: the fatbin; a dash becomes an underscore in the symbols.
      srcs: one .cu file and headers.
      deps: cc_library targets for their headers.
      nvcc_copts: options for nvcc.
      **kwargs: testonly, tags, visibility.
    """
    _cuda_fatbin(
        name = name,
        srcs = srcs,
        embed = name + "_embed.c",
        fatbin = name + ".fatbin",
        nvcc_copts = nvcc_copts,
        target_compatible_with = CUDA_COMPATIBLE,
        deps = deps + ["@cuda//:headers"],
        **kwargs
    )
    native.cc_library(
        name = name + "_embed",
        srcs = [name + "_embed.c"],
        target_compatible_with = CUDA_COMPATIBLE,
        **kwargs
    )
