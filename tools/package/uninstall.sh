#!/bin/sh
# Removes what install.sh installed. With --data also what runs left for this user: the cache between runs, and pages of `cusplice top`
# whose processes were killed. Settings of the user (~/.config/cusplice, /etc/cusplice.conf) stay.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
[ -r "$here/installed" ] || { echo "uninstall: run PREFIX/lib/cusplice/uninstall.sh" >&2 && exit 2; }
if [ "${1:-}" = --data ]; then
    cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/cusplice
    "$here/../../bin/cusplice" cache --clear "$cache" 2>/dev/null || true
    rm -f "$cache/cusplice.cache.lock" # which --clear leaves, for programs that write just now
    [ ! -d "$cache" ] || rmdir "$cache" 2>/dev/null || echo "uninstall: $cache has other files and stays" >&2
    uid=$(id -u)
    for page in "${XDG_RUNTIME_DIR:-/dev/shm}/cusplice-$uid-"* "/dev/shm/cusplice-$uid-"*; do
        [ ! -f "$page" ] || [ -e "/proc/${page##*-}" ] || rm -f "$page"
    done
elif [ $# -gt 0 ]; then
    echo "usage: uninstall.sh [--data]" >&2
    exit 2
fi
cd "$here/../.."
while read -r file; do rm -f "$file"; done <"$here/installed"
rm -f lib/cusplice/installed lib/cusplice/uninstall.sh
rmdir lib/cusplice share/cusplice/presets share/cusplice 2>/dev/null || true
