#!/bin/sh
# Copies a build of cusplice to a folder, in the form that the other recipes use:
#
#   bazel build //shim:libcusplice.so //tools:cusplice
#   sudo sh tools/recipes/install.sh /opt/cusplice
#
# The folder may be moved and copied. Install as root, or as the user who will use it: cusplice believes the
# settings and presets of these two alone. A second argument names another build than bazel-bin.
set -eu
prefix=${1:?usage: install.sh PREFIX [BUILD]}
build=${2:-bazel-bin}

for folder in bin lib share/cusplice/presets; do
    install -d -m 755 "$prefix/$folder"
done
install -m 755 "$build/tools/cusplice" "$prefix/bin/cusplice"
install -m 755 "$build/shim/libcusplice.so" "$prefix/lib/libcusplice.so"
install -m 644 "$build"/config/built/presets/*.conf "$prefix/share/cusplice/presets/"
