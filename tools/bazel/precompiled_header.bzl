"""A header that the compiler has read once, for all files that begin with it."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = ctx.attr.dep[CcInfo].compilation_context

    # A compiler that cannot use what another one, or other options, made of the header reads the header itself.
    # By .hpp it knows the language.
    header = ctx.actions.declare_file(ctx.label.name + ".hpp")
    ctx.actions.write(header, "#include <{}>\n".format(ctx.attr.header))
    read = ctx.actions.declare_file(ctx.label.name + ".hpp.gch")

    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = read.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        use_default_shell_env = True,  # a compiler that is started by a script looks for itself in PATH
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [read],
        mnemonic = "CppPrecompile",
    )

    # The compiler does not list what it took from a header that was read before: this file changes with it.
    inputs = ctx.actions.declare_file(ctx.label.name + "_inputs.hpp")
    ctx.actions.run_shell(
        command = "cat \"$@\" | sha256sum | sed 's,^,// ,' > " + inputs.path,
        arguments = [ctx.actions.args().add_all(context.headers)],
        inputs = context.headers,
        outputs = [inputs],
        mnemonic = "HeaderInputs",
    )
    return [
        DefaultInfo(files = depset([read])),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset([header, read, inputs]),
            system_includes = depset([header.dirname]),
        )),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    doc = "A target that depends on this, and has the same copts, begins with the header by -include NAME.hpp -include NAME_inputs.hpp.",
    attrs = {
        "dep": attr.label(doc = "the library of the header", mandatory = True, providers = [CcInfo]),
        "header": attr.string(doc = "as #include <> names it", mandatory = True),
        "copts": attr.string_list(),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
