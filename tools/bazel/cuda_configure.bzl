"""@cuda: the CUDA toolkit that tools/bazel/find_cuda.sh finds, or targets that say "there is none".

Without a toolkit everything that depends on @cuda is incompatible with this machine: `bazel build //...` leaves it out
and builds the rest.
"""

_DEFS = """
CUDA_FOUND = {found}
CUDA_ROOT = "{root}"
CUDA_NVCC = "{root}/bin/nvcc"
CUDA_LIB_DIR = "{lib}"
CUDA_STUB_DIR = "{stubs}"

# The libraries under their plain names, for -l.
CUDA_LINK_DIR = "{link}"

# For target_compatible_with.
CUDA_COMPATIBLE = {compatible}
"""

_BUILD_HEAD = """
package(default_visibility = ["//visibility:public"])

# No platform has this value: a target that asks for it is left out of //... .
constraint_setting(name = "toolkit")

constraint_value(
    name = "found",
    constraint_setting = ":toolkit",
)
"""

# The CUDA C++ core libraries are large and only nvcc needs them; <nv/target> is what cuda_fp16.h includes.
_HEADERS = """
cc_library(
    name = "headers",
    hdrs = glob(
        [
            "include/*.h",
            "include/*.hpp",
            "include/crt/**",
            "include/cccl/nv/**",
            "include/nv/**",
        ],
        allow_empty = True,
    ),
    includes = [
        "include",
        "include/cccl",
    ],
)

# The file to link against and to compare name tables with; it has no code.
filegroup(
    name = "stub_file",
    srcs = ["stubs/libcuda.so"],
)
"""

_LIBRARY = """
cc_library(
    name = "{name}",
    linkopts = {linkopts},
    target_compatible_with = {compatible},
    deps = {deps},
)
"""

def _library(name, linkopts, found):
    return _LIBRARY.format(
        name = name,
        linkopts = linkopts,
        compatible = [] if found else [":found"],
        deps = [":headers"] if found else [],
    )

def _lib_dir(ctx, root):
    for dir in ["lib64", "lib"]:
        for entry in ctx.path(root + "/" + dir).readdir() if ctx.path(root + "/" + dir).exists else []:
            if entry.basename.startswith("libcudart.so"):
                return root + "/" + dir
    fail("no libcudart in " + root)

def _link_libraries(ctx, lib, names):
    """Gives lib/libNAME.so: wheels have only the versioned names, which the linker's -lNAME does not find."""
    files = {entry.basename: entry for entry in ctx.path(lib).readdir()}
    for name in names:
        versions = sorted([f for f in files if f == name + ".so" or f.startswith(name + ".so.")])
        if versions:
            ctx.symlink(files[versions[0]], "lib/" + name + ".so")
    for archive in ["libcudart_static.a", "libcudadevrt.a", "libculibos.a"]:
        if archive in files:
            ctx.symlink(files[archive], "lib/" + archive)

def _cuda_configure_impl(ctx):
    found = ctx.execute(["bash", str(ctx.path(Label("//tools/bazel:find_cuda.sh")))])
    if found.return_code != 0:
        if found.stderr:
            fail(found.stderr)
        ctx.file("defs.bzl", _DEFS.format(found = False, root = "", lib = "", stubs = "", link = "", compatible = ["@cuda//:found"]))
        names = ["headers", "stub", "stub_file", "cudart_shared", "cudart_static", "cublas"]
        ctx.file("BUILD", _BUILD_HEAD + "".join([_library(name, [], False) for name in names]))
        return

    root = found.stdout.strip()
    lib = _lib_dir(ctx, root)

    # tools/toolkits: the C sources see other headers than the compiler of device code, which finds its own.
    other = ctx.os.environ.get("CUSPLICE_CUDA_HEADERS", "")
    include = other or root + "/include"
    ctx.symlink(include, "include")
    _link_libraries(ctx, lib, ["libcudart", "libcublas", "libcublasLt"])
    stub = ctx.path(lib + "/stubs/libcuda.so")
    if stub.exists and not other:
        ctx.symlink(stub, "stubs/libcuda.so")
    else:
        ctx.file("stubs/README", "libcuda.so here is made by tools/bazel/cuda_stub.sh.\n")
        made = ctx.execute([
            "bash",
            str(ctx.path(Label("//tools/bazel:cuda_stub.sh"))),
            include,
            str(ctx.path("stubs/libcuda.so")),
        ])
        if made.return_code != 0:
            fail("no libcuda.so to link against: " + made.stderr)

    own_lib = str(ctx.path("lib"))
    own_stubs = str(ctx.path("stubs"))
    search = ["-L" + own_lib, "-Wl,-rpath," + lib, "-Wl,-rpath-link," + lib]
    static = ["-L" + own_lib, "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
    ctx.file("defs.bzl", _DEFS.format(
        found = True,
        root = root,
        lib = lib,
        stubs = own_stubs,
        link = own_lib,
        compatible = [],
    ))
    ctx.file("BUILD", _BUILD_HEAD + _HEADERS +
                      _library("stub", ["-L" + own_stubs, "-lcuda"], True) +
                      _library("cudart_shared", search + ["-lcudart"], True) +
                      _library("cudart_static", static, True) +
                      _library("cublas", search + ["-lcublas"], True))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    doc = "Makes @cuda from the toolkit of this machine.",
    configure = True,
    environ = [
        "CC",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUSPLICE_CUDA",
        "CUSPLICE_CUDA_HEADERS",
        "CUSPLICE_TOOLKIT",
        "PATH",
    ],
    local = True,
)
