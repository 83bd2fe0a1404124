// What a program of a test has recorded, as it is read.
#ifndef CUSPLICE_TESTS_SIM_RECORDING_H
#define CUSPLICE_TESTS_SIM_RECORDING_H

#include "tests/sim/child.h"
#include "tests/unit/trace/opened.h"
#include "tools/trace/model.h"

namespace sim {

// Both are null where the trace cannot be read.
struct Recording {
    explicit Recording(const std::string &path)
        : trace(Open(path)), error(open_error), model(trace ? model_make(trace.get()) : nullptr) {}
    ~Recording() { model_free(model); }
    Recording(const Recording &) = delete;
    Recording &operator=(const Recording &) = delete;

    Trace trace;
    std::string error;
    ::model *model;
};

inline std::unique_ptr<Recording> Read(const std::string &path) {
    return std::make_unique<Recording>(path);
}

} // namespace sim

#endif
