#!/bin/sh
# Runs an image as it is, with an installation of this machine. The arguments are those of docker run, from its
# options on:
#
#   sh docker-run.sh your/engine its arguments
#   sh docker-run.sh --user 1000 --name engine your/engine its arguments
#
# PREFIX belongs to root: in the container an installation of another user is not believed, nor is root's where
# the daemon maps users (rootless, userns-remap) and root looks like nobody. Use the Dockerfile there.
# RUN must be writable for the container's user. {host} is the container's name for itself, since the
# first process of each container has number 1.
PREFIX=${PREFIX:-/opt/cusplice}
RUN=${RUN:-$PWD/run}
DOCKER=${DOCKER:-docker}
GPUS=${GPUS---gpus all}

mkdir -p "$RUN"
# shellcheck disable=SC2086 # several words
exec $DOCKER run --rm $GPUS -v "$PREFIX:/opt/cusplice:ro" -v "$RUN:/run/cusplice" \
    -e LD_PRELOAD=/opt/cusplice/lib/libcusplice.so -e CUSPLICE_PRESETS=auto \
    -e "CUSPLICE_STATS=/run/cusplice/{host}.{process}.json" -e CUSPLICE_STATS_EVERY=10 "$@"
