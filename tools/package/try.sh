#!/usr/bin/env bash
# tools/release --check calls it: try.sh RELEASE_BIN PLAIN_BIN EPOCH. Each package is installed into a fresh place, runs the decode host
# on the simulator, and is removed; nothing of it may be left.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$1 plain=$2 epoch=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
# Not in a condition, where bash would go on after a command that fails.
attempt() {
    local status
    set +e
    (
        set -e
        "$2"
    ) >"$work/log" 2>&1
    status=$?
    set -e
    if [[ $status == 0 ]]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED $1"
        cat "$work/log"
    fi
}

export CUSIM_LIB=$plain/harness/sim/lib HOME=$work/home XDG_CONFIG_HOME=$work/none
unset XDG_CACHE_HOME XDG_RUNTIME_DIR ${!CUSPLICE@}
mkdir -p "$HOME/.cache"
program=("$plain/harness/decode/decode" --tokens 100)
run_plain() { tools/sim-run -- "${program[@]}"; }
run_from() { # the launcher: the text is the plain one, and launches went into graphs by the preset that is packed
    tools/sim-run -- "$1" run -c decode --stats "$work/stats" -- "${program[@]}" >"$work/text"
    cmp "$work/text" "$work/expected"
    python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["issued"]["in_graphs"] < 100)' "$work/stats"
    rm "$work/stats"
}
empty() { # but for folders
    find "$1" ! -type d
    [[ -z $(find "$1" ! -type d) ]]
}

alike() {
    python3 tools/package/pack.py --bin "$bin" --out "$work/one" --epoch "$epoch"
    (umask 077 && cp -rL --parents "$bin"/{tools/cusplice,shim/libcusplice.so,harness/player/player,harness/scenario/scenario} "$work/copy" &&
        TZ=Asia/Tokyo python3 tools/package/pack.py --bin "$work/copy$bin" --out "$work/two" --epoch "$epoch")
    diff -r "$work/one" "$work/two"
}
tarball() {
    mkdir "$work/unpacked"
    tar -xzf "$work"/one/*.tar.gz -C "$work/unpacked"
    "$work"/unpacked/*/install.sh "$work/prefix"
    run_from "$work/prefix/bin/cusplice"
    ls "$HOME"/.cache/cusplice/* # the run left something to remove
    "$work/prefix/lib/cusplice/uninstall.sh" --data
    empty "$work/prefix"
    [[ ! -e $HOME/.cache/cusplice ]]
}
wheel() {
    python3 -m venv "$work/venv"
    (cd "$work/venv" && find . ! -type d | sort) >"$work/before"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index --no-compile "$work"/one/*.whl
    run_from "$work/venv/bin/cusplice"
    "$work/venv/bin/pip" uninstall --quiet --disable-pip-version-check --yes cusplice
    rm -rf "$work/venv/lib/"*/site-packages/cusplice/__pycache__
    (cd "$work/venv" && find . ! -type d ! -path '*/__pycache__/*' | sort) >"$work/after"
    diff <(grep -v __pycache__ "$work/before") "$work/after"
}
deb() {
    dpkg-deb --info "$work"/one/*.deb
    dpkg -x "$work"/one/*.deb "$work/root"
    run_from "$work/root/usr/bin/cusplice"
    mkdir -p "$work"/bare/var/lib/dpkg/{info,updates,triggers}
    touch "$work"/bare/var/lib/dpkg/{status,available}
    dpkg --root="$work/bare" --force-depends --force-not-root --log="$work/dpkg.log" -i "$work"/one/*.deb
    run_from "$work/bare/usr/bin/cusplice"
    dpkg --root="$work/bare" --force-not-root --log="$work/dpkg.log" -P cusplice
    [[ ! -e $work/bare/usr/bin/cusplice && ! -e $work/bare/usr/lib/cusplice ]]
}

mkdir "$work/copy"
run_plain >"$work/expected"
attempt "two packings are bit-equal" alike
attempt "tarball" tarball
attempt "wheel" wheel
if command -v dpkg >/dev/null; then attempt "Debian package" deb; fi
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
