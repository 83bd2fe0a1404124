#!/bin/sh
# Promise: tools/sim-run passes everything through, sets the path for the child alone, and says what to build if nothing is built.
set -u
run=$(readlink -f "$1")
CUSIM_LIB=$(dirname "$(readlink -f "$2")")
export CUSIM_LIB
failed=0

expect() {
    if [ "$2" != "$3" ]; then
        echo "$1: wanted '$3', got '$2'"
        failed=1
    fi
}

cd /
expect "arguments" "$("$run" -- printf '%s|' 'a  b' '$x' '' --)" 'a  b|$x||--|'
expect "without the dashes" "$("$run" echo one two)" "one two"
expect "path" "$("$run" -- sh -c 'echo "$LD_LIBRARY_PATH"')" "$CUSIM_LIB${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
expect "path behind one that is set" "$(LD_LIBRARY_PATH=/x "$run" -- sh -c 'echo "$LD_LIBRARY_PATH"')" "$CUSIM_LIB:/x"
other=$(dirname "$CUSIM_LIB")/12040
expect "path for another driver" "$(CUSIM_DRIVER_VERSION=12040 "$run" -- sh -c 'echo "$LD_LIBRARY_PATH $CUSIM_KERNELS"')" \
    "$other:$CUSIM_LIB${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} $CUSIM_LIB/libcusim_kernels.so"
expect "path for a driver without a library" "$(CUSIM_DRIVER_VERSION=12345 "$run" -- sh -c 'echo "$LD_LIBRARY_PATH"')" \
    "$CUSIM_LIB${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
expect "standard input" "$(echo in | "$run" -- cat)" "in"
"$run" -- sh -c 'exit 7'
expect "exit status" $? 7
"$run" -- /no/such/program 2>/dev/null
expect "no such program" $? 127
"$run" >/dev/null 2>&1
expect "no program" $? 2
"$run" --frob 2>/dev/null
expect "unknown option" $? 2
expect "help" "$("$run" --help | head -c 6)" "usage:"
said=$(CUSIM_LIB=/no/where "$run" -- true 2>&1)
expect "not built" $? 127
case $said in
*"bazel build //harness/sim:dist"*) ;;
*) expect "not built says" "$said" "... bazel build //harness/sim:dist" ;;
esac
ln -s "$run" "${TEST_TMPDIR:-/tmp}/link-$$"
expect "through a link" "$("${TEST_TMPDIR:-/tmp}/link-$$" -- echo yes)" "yes"
rm -f "${TEST_TMPDIR:-/tmp}/link-$$"
[ $failed -eq 0 ] && echo "all as promised"
exit $failed
