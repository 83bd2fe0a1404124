// big FILE [OPS]: writes a large trace, to measure by hand how long verbs take. Steps of 1000 ops
// on one stream; 200 kernels in turn with 24 bytes of params. Every 50th op is eager, the others
// are in graphs of 49, of which every fourth is patched.
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/trace/synth.h"

int main(int argc, char **argv) {
    long ops = argc > 2 ? atol(argv[2]) : 10000000;
    if (argc < 2 || ops < 1) {
        fprintf(stderr, "usage: big FILE [OPS [THREADS]]\n");
        return 2;
    }
    bool two = argc > 3 && atoi(argv[3]) == 2;
    Synth s(argv[1]);
    s.Facts("{\"argv\": [\"big\"]}");
    s.Thread(1, "main");
    s.Stream(CST_STREAM_LEGACY, 0);
    if (two) {
        s.Thread(2, "other");
        s.Stream(CST_STREAM_CREATED, 0x1234);
    }
    uint32_t stream = 1;
    uint64_t begun = s.now;
    for (int i = 0; i < 200; i++)
        s.Kernel("_ZN5model" + std::to_string(8) + "kernel" + std::to_string(10 + i % 90) + "ILi" +
                     std::to_string(i) + "EEEvPfS1_i",
                 24);
    for (long i = 0; i < ops; i++) {
        uint32_t kind = static_cast<uint32_t>(1 + i % 200);
        if (two && i % 1000 == 0) {
            stream = s.thread = static_cast<uint32_t>(1 + i / 1000 % 2);
            if (stream == 1)
                begun = s.now;
            else
                s.now = begun + 1;
        }
        s.param = static_cast<uint64_t>(i / 4000);
        s.host_ns = static_cast<uint32_t>(60 + i * 7919 % 101);
        if (i % 50 == 49)
            s.Eager(stream, kind, "rule", "rule");
        else
            s.Op(stream, kind);
        if (i % 50 == 48)
            s.Launch(stream, 49, static_cast<uint32_t>(1 + i % 1000 / 50),
                     i / 1000 % 4 == 0 ? CST_PATCHED : CST_EXACT, i / 1000 % 4 == 0 ? 49 : 0);
        if (i % 1000 == 999)
            s.Sync(stream);
    }
    int error = s.Close();
    if (error)
        fprintf(stderr, "%s cannot be written: error %d\n", argv[1], error);
    return error != 0;
}
