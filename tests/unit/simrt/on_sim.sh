#!/bin/sh
# Runs a test program on the simulator, every symbol bound at the start: on_sim.sh LIBCUDA PROGRAM ARGS...
# The same program runs on a GPU when it is started without this script: what it expects is what CUDA does.
lib=$(dirname "$(readlink -f "$1")")
shift
LD_LIBRARY_PATH=$lib LD_BIND_NOW=1
export LD_LIBRARY_PATH LD_BIND_NOW
exec "$@"
