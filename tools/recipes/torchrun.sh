#!/bin/sh
# Runs the ranks of torchrun with cusplice. The arguments are those of torchrun:
#
#   sh torchrun.sh --nproc-per-node 8 train.py
#   sh torchrun.sh --nproc-per-node 8 --no-python ./your-program
#
# The ranks inherit the library, and torchrun itself uses no CUDA. At the end: one table of all ranks on stderr.
# On several machines start this on each of them, with RUN on storage that all share. Each launcher tells of its
# own ranks, and the folder has the files of all.
PREFIX=${PREFIX:-/opt/cusplice}
RUN=${RUN:-$PWD/run.$(date +%Y%m%d-%H%M%S)}

exec "$PREFIX/bin/cusplice" run --stats "$RUN/" --why -- torchrun "$@"
