// long_trace OUT.cst OPS: writes a trace with steps of 100 ops on two streams, half of the ops in
// graphs.
#include <stdio.h>
#include <stdlib.h>

#include "tests/export/make.h"

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: long_trace OUT.cst OPS\n");
        return 2;
    }
    Maker maker(argv[1]);
    maker.Facts("{\"argv\":[\"long\"]}");
    uint32_t thread = maker.Thread(4000, "main"), kinds[40];
    uint32_t streams[] = {maker.Stream(), maker.Stream()};
    for (unsigned i = 0; i < 40; i++) {
        std::string name = "kernel" + std::to_string(i) + "_of_a_model";
        kinds[i] = maker.Kernel(
            "_ZN2at6native" + std::to_string(name.size()) + name + "IfLi4EEEvPKT_PS1_i", 0, 64);
    }
    uint64_t ops = strtoull(argv[2], nullptr, 10), ns = 1000000000;
    for (uint64_t i = 0; i < ops; i++, ns += 300) {
        uint32_t stream = streams[i / 100 % 2], place = i % 100;
        bool in_graph = place < 50;
        maker.Op(ns, thread, stream, kinds[i % 40], {128, 1, 1, 256, 1, 1, 0},
                 in_graph ? CST_DEFERRED : CST_EAGER, 150);
        if (place == 49)
            maker.Launch(ns + 50, thread, stream, 50, stream, 80, CST_PATCHED);
        if (place == 99) {
            maker.Call(ns + 160, thread, "cuStreamSynchronize", CST_CALL_FLUSH, stream, CST_SCOPE_T,
                       10);
            maker.Call(ns + 180, thread, "cuStreamSynchronize", CST_CALL_STEP_END, stream);
        }
    }
    maker.Close();
    return 0;
}
