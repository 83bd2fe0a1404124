#!/usr/bin/env bash
# tools/release --check calls it: try.sh FOLDER [SUITE...]. Each package of the folder is installed into a fresh place, runs the demo,
# leaves something for its user, and is removed; nothing of it may be left. As root, and with debootstrap, also in a bare root of each
# distribution: bullseye and bookworm of Debian (glibc 2.31 and 2.36) and Ubuntu's jammy (2.35) unless others are named. Packages for
# AArch64 are installed in bare roots of Debian alone: pip, dpkg and rpm refuse them elsewhere, and ports of Ubuntu lie on another server.
set -euo pipefail
out=$(cd "$1" && pwd)
shift
suites=("$@")
[[ ${#suites[@]} != 0 ]] || suites=(bullseye bookworm)
arch=amd64
if compgen -G "$out/*-aarch64.tar.gz" >/dev/null; then arch=arm64; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
# Not in a condition, where bash would go on after a command that fails.
attempt() {
    local status begun=$SECONDS what=$1
    shift
    : >"$work/times"
    set +e
    (
        set -e
        "$@"
    ) >"$work/log" 2>&1
    status=$?
    set -e
    if [[ $status == 0 ]]; then passed=$((passed + 1)) && echo "passed: $what, $((SECONDS - begun)) s$(<"$work/times")"; else
        failed=$((failed + 1))
        echo "FAILED: $what"
        cat "$work/log"
    fi
}

# What a part of an attempt takes stands in its line, in seconds: timed WORDS COMMAND...
timed() {
    local begun=${EPOCHREALTIME//[!0-9]/} tenths
    "${@:2}"
    tenths=$(((${EPOCHREALTIME//[!0-9]/} - begun + 50000) / 100000))
    printf '%s %d.%d' "$1" $((tenths / 10)) $((tenths % 10)) >>"$work/times"
}

export HOME=$work/home XDG_CONFIG_HOME=$work/none XDG_RUNTIME_DIR=$work/runtime LC_ALL=C.UTF-8
unset XDG_CACHE_HOME ${!CUSPLICE@} ${!CUSIM@} LD_PRELOAD LD_LIBRARY_PATH
mkdir -p "$HOME/.cache" "$XDG_RUNTIME_DIR"

# The launcher: both texts are equal, and launches went into graphs by the preset that is packed.
demo() {
    "$1" demo --sim --tokens 60 --force -o "$work/json"
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not d["outputs_equal"] or d["preloaded"]["stats"]["issued"]["in_graphs"] < 1000)' "$work/json"
}
# The launcher and the packages' folder: nothing is wrong with them on the simulator. A run leaves a cache, and a process that was killed a
# page. Both go, and no page of one that lives.
leave_and_forget() {
    # qemu has no process_vm_readv, which doctor finds wrong.
    LD_LIBRARY_PATH=$2/demo/sim "$1" doctor || [[ $arch == arm64 ]]
    LD_LIBRARY_PATH=$2/demo/sim "$1" run -c decode -- "$2/demo/decode" --tokens 100
    ls "$HOME/.cache/cusplice/cusplice.cache"
    touch "$XDG_RUNTIME_DIR/cusplice-$(id -u)-"{99999999,$$}
    "${@:3}"
    [[ ! -e $HOME/.cache/cusplice ]]
    [[ $(ls "$XDG_RUNTIME_DIR") == "cusplice-$(id -u)-$$" ]]
    "${@:3}" # there is nothing any more, which is no fault
}
# The prefix, and the folder of zsh: the pages of all verbs, completion that the shells take, and the commit in the version.
documented() {
    local verb
    "$1/bin/cusplice" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -v '^cusplice$' >"$work/verbs"
    grep -q doctor "$work/verbs"
    while read -r verb; do [[ -s $1/share/man/man1/cusplice-$verb.1 ]]; done <"$work/verbs"
    ls "$1"/share/man/man1/cusplice.1 "$1"/share/man/man5/cusplice.conf.5 "$1"/share/doc/cusplice/{README,CHANGELOG,troubleshooting}.md
    (source "$1/share/bash-completion/completions/cusplice" && complete -p cusplice)
    ls "$1/share/fish/vendor_completions.d/cusplice.fish" "$1/$2/_cusplice"
    "$1/bin/cusplice" --version | grep -E '^commit   [0-9a-f]{40}'
}
empty() { # but for folders
    find "$1" ! -type d
    [[ -z $(find "$1" ! -type d) ]]
}
no_own_folder() { [[ -z $(find "$1" -type d -name '*cusplice*') ]]; }

tarball() {
    local prefix=$work/prefix
    mkdir "$work/unpacked"
    tar -xzf "$out"/*.tar.gz -C "$work/unpacked"
    "$work"/unpacked/*/install.sh "$prefix"
    touch "$prefix/lib/cusplice/of-an-older-version"
    echo lib/cusplice/of-an-older-version >>"$prefix/lib/cusplice/installed"
    "$work"/unpacked/*/install.sh "$prefix"
    [[ ! -e $prefix/lib/cusplice/of-an-older-version ]]
    demo "$prefix/bin/cusplice"
    documented "$prefix" share/zsh/site-functions
    PKG_CONFIG_PATH=$prefix/share/pkgconfig includes "$prefix"
    leave_and_forget "$prefix/bin/cusplice" "$prefix/lib/cusplice" "$prefix/lib/cusplice/forget.sh"
    "$prefix/lib/cusplice/uninstall.sh" --data
    empty "$prefix"
    no_own_folder "$prefix"
}
# A program that includes the header is compiled as pkg-config says.
includes() {
    command -v pkg-config || return 0
    [[ -r $(pkg-config --variable=library cusplice) ]]
    printf '#include <cusplice.h>\nint main(void) { return CUSPLICE_INTERFACE - 1; }\n' >"$work/p.c"
    # shellcheck disable=SC2046
    gcc $(pkg-config --cflags cusplice) "$work/p.c" -o "$work/p"
    "$work/p"
}
wheel() {
    python3 -m venv "$work/venv"
    (cd "$work/venv" && find . ! -path '*/__pycache__*' | sort) >"$work/before"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$out"/*.whl
    demo "$work/venv/bin/cusplice"
    local inside
    inside=$(echo "$work"/venv/lib/python3*/site-packages/cusplice)
    documented "$inside" share/zsh/site-functions
    LD_LIBRARY_PATH=$inside/lib/cusplice/demo/sim from_python "$inside/lib/cusplice/demo/decode"
    leave_and_forget "$work/venv/bin/cusplice" "$inside/lib/cusplice" "$inside/lib/cusplice/forget.sh"
    "$work/venv/bin/pip" uninstall --quiet --disable-pip-version-check --yes cusplice
    (cd "$work/venv" && find . ! -path '*/__pycache__*' | sort) >"$work/after"
    diff "$work/before" "$work/after"
}
# The module of the wheel finds launcher and preset, and both of its ways preload.
from_python() {
    "$work/venv/bin/python" -c '
import json, subprocess, sys, cusplice
program, folder = [sys.argv[1], "--tokens", "60"], sys.argv[2]
cusplice.run(program, config="decode", stats=folder + "/run", check=True)
subprocess.run(program, env=cusplice.configure_subprocess(config="decode", stats=folder + "/env"), check=True)
sys.exit(any(json.load(open(folder + name))["issued"]["in_graphs"] < 1000 for name in ("/run", "/env")))' "$1" "$work"
}
# The root and the folder of zsh. What both kinds of package share: installed into a bare root, it has the same files with the same modes.
packaged() {
    local root=$1
    demo "$root/usr/bin/cusplice"
    documented "$root/usr" "$2"
    leave_and_forget "$root/usr/bin/cusplice" "$root/usr/lib/cusplice" "$root/usr/lib/cusplice/forget.sh"
    cp -a "$root/usr" "$root-usr"
}
deb() {
    local root=$work/deb dpkg=(dpkg --root="$work/deb" --force-depends --force-not-root --log="$work/dpkg.log")
    mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
    touch "$root"/var/lib/dpkg/{status,available}
    "${dpkg[@]}" -i "$out"/*.deb
    packaged "$root" share/zsh/vendor-completions
    "${dpkg[@]}" -P cusplice
    [[ ! -e $root/usr ]] || { empty "$root/usr" && no_own_folder "$root/usr"; }
}
rpm_() {
    local root=$work/rpm
    mkdir -p "$root"
    rpm --root "$root" --initdb
    rpm --root "$root" --nodeps -i "$out"/*.rpm
    rpm --root "$root" --nodeps -V cusplice
    packaged "$root" share/zsh/site-functions
    rpm --root "$root" -e cusplice
    empty "$root/usr"
    no_own_folder "$root/usr"
}
# But for the folder of zsh.
same() {
    mv "$work"/deb-usr/share/zsh/vendor-completions "$work"/deb-usr/share/zsh/site-functions
    diff -r "$work/deb-usr" "$work/rpm-usr"
    diff <(cd "$work/deb-usr" && find . -printf '%m %P\n' | sort) <(cd "$work/rpm-usr" && find . -printf '%m %P\n' | sort)
}

# Debian has no package of Ubuntu's keys.
keys_of_ubuntu() {
    local package=ubuntu-keyring_2021.03.26_all.deb
    (
        cd "$work"
        [[ -e $package ]] || curl -sSfO "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/$package"
        echo "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f  $package" | sha256sum --check --quiet
        dpkg -x "$package" keys
    ) >&2
    echo "$work/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"
}

# From nothing to the table, in a root that has python3 and nothing else.
bare() {
    local root=$work/$1 options=(--arch="$arch" --variant=minbase --include=python3,python3-venv)
    case $1 in
    bionic | focal | jammy | noble) options+=(--components=main,universe --keyring="$(keys_of_ubuntu)") ;;
    esac
    timed ': debootstrap' debootstrap "${options[@]}" "$1" "$root"
    mkdir "$root/out"
    cp "$out"/* "$root/out"
    inside "$root" 'ldd --version | head -n 1; python3 -m venv /venv'
    each wheel '/venv/bin/pip install --quiet --no-index /out/*.whl' '/venv/bin/cusplice demo' '/venv/bin/pip uninstall --quiet --yes cusplice'
    each tarball 'tar -xzf /out/*.tar.gz; cusplice-*/install.sh' 'cusplice demo' '/usr/local/lib/cusplice/uninstall.sh'
    each deb 'dpkg -i /out/*.deb' 'cusplice demo' 'dpkg -P cusplice'
    rm -rf "$root"
}
# In the root of `bare`: what installs a package, the demo, what removes it.
each() {
    timed "; $1: install" inside "$root" "$2"
    timed ', demo' inside "$root" "$3"
    timed ', removal' inside "$root" "$4"
}
inside() {
    unshare --mount --pid --fork --mount-proc="$1/proc" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        chroot "$1" sh -ec "cd /tmp; $2"
}

attempt "tarball" tarball
if [[ $# == 0 && $arch == amd64 ]]; then suites+=(jammy); fi
if [[ $arch == amd64 ]]; then attempt "wheel" wheel; fi
if [[ $arch == amd64 ]] && command -v dpkg >/dev/null; then attempt "Debian package" deb; fi
if [[ $arch == amd64 ]] && compgen -G "$out/*.rpm" >/dev/null; then
    attempt ".rpm" rpm_
    [[ ! -d $work/deb-usr ]] || attempt ".rpm and Debian package have the same files" same
fi
if [[ $(id -u) == 0 ]] && command -v debootstrap >/dev/null && unshare --mount true 2>/dev/null; then
    for suite in "${suites[@]}"; do attempt "$suite" bare "$suite"; done
fi
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
