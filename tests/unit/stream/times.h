// What calls take the host with an H200 (tests/gpu/RESULTS.md), and what the library takes, for
// tests that move the clock by it.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_TIMES_H
#define CUSPLICE_TESTS_UNIT_STREAM_TIMES_H

// In ns of the host. The last four: the library's for an op in a graph, one that is looked at, one
// that comes where none was known, one of a stream that is demoted.
enum {
    LAUNCH = 2400,
    GRAPH = 2500,
    PATCH = 900,
    BUILD = 30000,
    BUILD_NODE = 1800,
    MATCHED = 40,
    LOOKED_AT = 210,
    NEW = 700,
    LEFT_ALONE = 30,
};

#endif
