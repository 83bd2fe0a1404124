#!/usr/bin/env bash
# Fails if tools/bazel/commit.sh does not tell the commit of a tree, or not the same one twice. Run by //tests/docs:stamp_test.
set -euo pipefail
script=$PWD/$1
command -v git >/dev/null || {
    echo "SKIPPED: git is not installed"
    exit 0
}
cd "$(mktemp -d)"
export HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
is() {
    [[ $("$script") == "STABLE_CUSPLICE_COMMIT $1" ]] || {
        echo "it says '$("$script")' and not '$1': $2"
        exit 1
    }
}
GIT_CEILING_DIRECTORIES=$(dirname "$PWD") is unknown "no repository"
CUSPLICE_COMMIT=abc is abc "an archive that names its commit"
git init -q .
echo 1 >file
git add file
git commit -qm 1
commit=$(git rev-parse HEAD)
is "$commit" "a clean tree"
echo 2 >other
is "$commit" "a file that is not in it"
echo 2 >file
is "$commit+" "a file that differs"
