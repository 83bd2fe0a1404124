#!/bin/sh
# Installs cusplice below a prefix: ./install.sh [PREFIX], default /usr/local. PREFIX/lib/cusplice/uninstall.sh removes it again.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
prefix=${1:-/usr/local}
umask 022
mkdir -p "$prefix"
prefix=$(CDPATH= cd -- "$prefix" && pwd)
cd "$here"
# What an older version had goes first: it may have files that this one has not.
[ ! -x "$prefix/lib/cusplice/uninstall.sh" ] || "$prefix/lib/cusplice/uninstall.sh"
files=$(find bin lib include share -type f | sort)
for file in $files; do
    mkdir -p "$prefix/$(dirname "$file")"
    # A new file in place of the old one: a program that has the old library mapped keeps it.
    cp "$file" "$prefix/$file.new"
    mv -f "$prefix/$file.new" "$prefix/$file"
done
cp uninstall.sh "$prefix/lib/cusplice/uninstall.sh"
echo "$files" >"$prefix/lib/cusplice/installed"
echo "installed: $prefix/bin/cusplice"
