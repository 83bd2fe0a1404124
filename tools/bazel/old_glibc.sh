#!/usr/bin/env bash
# old_glibc.sh [x86_64|aarch64]
#
# Makes what --config=release needs, in .cache/release, once: headers and link-time stubs of glibc 2.28 (sysroot), and a compiler that
# uses them (cc). The compiler is the machine's gcc, so that releases have the code that is tested and measured; only what they see of
# the C library is older. For AArch64 the names are --config=release-aarch64 and .cache/release-aarch64, and gcc is Debian's cross
# compiler. The ziglang wheel from PyPI (100 MB, pinned in release-wheels.txt) has the stubs of every glibc as text, and
# makes them; it goes again afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case ${1:-x86_64} in
x86_64) to=$PWD/.cache/release machine=x86_64 zig_name=x86 gcc=gcc loader=ld-linux-x86-64.so.2 ;;
aarch64) to=$PWD/.cache/release-aarch64 machine=aarch64 zig_name=aarch64 gcc=aarch64-linux-gnu-gcc loader=ld-linux-aarch64.so.1 ;;
*) echo "old_glibc: no releases are made for $1" >&2 && exit 2 ;;
esac
# Another version of this script makes all anew, under another path: Bazel would not see that files of a compiler changed.
stamp=$(cat tools/bazel/old_glibc.sh tools/bazel/release-wheels.txt | sha256sum | cut -c 1-12)-$PWD
[[ ! -r $to/stamp || $(<"$to/stamp") != "$stamp" ]] || exit 0

die() {
    echo "old_glibc: $*" >&2
    exit 2
}
[[ $(uname -m) == x86_64 ]] || die "releases are made on x86_64 alone"

rm -rf "$to"
mkdir -p "$to"
work=$(mktemp -d "$to.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: --require-hashes \
    --dest "$work/wheels" -r tools/bazel/release-wheels.txt </dev/null || die "pip could not fetch the ziglang wheel"
python3 -m zipfile -e "$work"/wheels/*.whl "$work/unpacked"
zig=$work/unpacked/ziglang
chmod +x "$zig/zig"

# A program that is linked leaves the stubs in zig's own cache.
echo 'int main(void) { return 0; }' >"$work/main.c"
ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig \
    "$zig/zig" cc -target "$machine-linux-gnu.2.28" "$work/main.c" -o "$work/main" || die "zig could not make the stubs"
find_made() {
    local found
    found=$(find "$work/zig/o" -name "$1" | head -n 1)
    [[ -n $found ]] || die "zig made no $1: it is not the version that release-wheels.txt names"
    echo "$found"
}

made=$to/${stamp%%-*}
include=$made/sysroot/usr/include lib=$made/sysroot/usr/lib/$machine-linux-gnu
mkdir -p "$include" "$lib"
for folder in any-linux-any "$zig_name-linux-any" generic-glibc "$zig_name-linux-gnu"; do
    cp -r "$zig/lib/libc/include/$folder/." "$include/"
done
for name in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1; do
    cp "$(find_made "$name")" "$lib/"
    ln -s "$name" "$lib/${name%.so.*}.so"
done
cp "$(find_made libc_nonshared.a)" "$lib/"
# stat and its like were no functions of libc.so.6 then: the small archive has them.
rm "$lib/libc.so"
echo "GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( $loader ) )" >"$lib/libc.so"
# The loader has what thread-local variables of shared libraries need, and on AArch64 the value that guards stacks.
echo 'void __tls_get_addr(void) {} unsigned long __stack_chk_guard = 1;' >"$work/ld.c"
if [[ $machine == x86_64 ]]; then
    echo 'GLIBC_2.3 { global: __tls_get_addr; local: *; };' >"$work/ld.map"
else
    echo 'GLIBC_2.17 { __tls_get_addr; __stack_chk_guard; };' >"$work/ld.map"
fi
"$gcc" -shared -nostdlib -Wl,-soname,"$loader" -Wl,--version-script="$work/ld.map" "$work/ld.c" -o "$lib/$loader"
# zig's start file is position-independent: one for both kinds of program.
cp "$(find_made crt1.o)" "$lib/crt1.o"
cp "$lib/crt1.o" "$lib/Scrt1.o"
cp "$("$gcc" -print-file-name=crti.o)" "$("$gcc" -print-file-name=crtn.o)" "$lib/"

# The headers are of all versions; this macro picks one.
cat >"$made/cc" <<END
#!/bin/sh
exec $gcc --sysroot=$made/sysroot -B$lib/ -D__GLIBC_MINOR__=28 "\$@"
END
chmod +x "$made/cc"
name=${to##*/} above=
[[ $machine == x86_64 ]] || above="--config=$machine "
cat >"$to/bazelrc" <<END
build:$name $above--config=release_options
build:$name --platform_suffix=-$name
build:$name --repo_env=CC=$made/cc
build:$name --action_env=NVCC_CCBIN=$made/cc
END
echo "$stamp" >"$to/stamp"
