#!/bin/sh
# Removes what runs left for this user: the cache between runs, and pages of `cusplice top` whose processes were killed. Every package has
# it as lib/cusplice/forget.sh, to be run before the package goes. Settings of the user (~/.config/cusplice) stay.
set -eu
[ $# = 0 ] || { echo "usage: forget.sh" >&2 && exit 2; }
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/cusplice
if [ -d "$cache" ]; then
    # --clear takes the lock, so that no program writes meanwhile.
    "$here/../../bin/cusplice" cache --clear "$cache" 2>/dev/null || true
    if [ -e "$cache/cusplice.cache" ]; then
        echo "forget: $cache/cusplice.cache is in use, and stays" >&2
    else
        rm -f "$cache/cusplice.cache.new" "$cache/cusplice.cache.lock"
        rmdir "$cache" 2>/dev/null || echo "forget: $cache has other files, and stays" >&2
    fi
fi
uid=$(id -u)
for page in "${XDG_RUNTIME_DIR:-/dev/shm}/cusplice-$uid-"* "/dev/shm/cusplice-$uid-"*; do
    [ ! -f "$page" ] || [ -e "/proc/${page##*-}" ] || rm -f "$page"
done
