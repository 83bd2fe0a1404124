#!/bin/sh
# Bazel's workspace status of --config=stamped: the commit of the tree, with "+" where files differ from it. Without Git, or where
# CUSPLICE_COMMIT is set (a source archive), that.
commit=${CUSPLICE_COMMIT:-$(git rev-parse HEAD 2>/dev/null)}
if [ -z "${CUSPLICE_COMMIT:-}" ] && [ -n "$(git status --porcelain --untracked-files=no 2>/dev/null)" ]; then commit=$commit+; fi
echo "STABLE_CUSPLICE_COMMIT ${commit:-unknown}"
