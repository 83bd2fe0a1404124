#!/bin/sh
# Removes what install.sh installed. With --data also what runs left for this user (forget.sh). Settings of the user
# (~/.config/cusplice, /etc/cusplice.conf) stay.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
[ -r "$here/installed" ] || { echo "uninstall: run PREFIX/lib/cusplice/uninstall.sh" >&2 && exit 2; }
if [ "${1:-}" = --data ]; then
    "$here/forget.sh"
elif [ $# -gt 0 ]; then
    echo "usage: uninstall.sh [--data]" >&2
    exit 2
fi
cd "$here/../.."
while read -r file; do rm -f "$file"; done <"$here/installed"
rm -f lib/cusplice/installed lib/cusplice/uninstall.sh
# Its own folders; those that other software shares stay.
find lib/cusplice share/cusplice share/doc/cusplice -depth -type d -exec rmdir {} + 2>/dev/null || true
