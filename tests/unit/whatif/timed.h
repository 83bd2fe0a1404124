// A recorded program with times of host and GPU, and what its clocks say. Shared code of clock_test
// and curve_test.
#ifndef TESTS_UNIT_WHATIF_TIMED_H
#define TESTS_UNIT_WHATIF_TIMED_H

#include "tests/unit/whatif/program.h"

extern "C" {
#include "tools/whatif/cost.h"
#include "tools/whatif/run.h"
}

namespace whatif {

// Round numbers, all different in their digits. ns.
inline whatif_cost Costs() {
    whatif_cost c = {};
    c.host.eager_launch = 3000;
    c.host.eager_memset = 2000;
    c.host.eager_copy = 4000;
    c.host.pageable_copy = 9000;
    c.host.matched_launch = 100;
    c.host.graph_launch = 1500;
    c.host.graph_node = 10;
    c.host.patched_node = 200;
    c.host.built_node = 5000;
    c.host.idle_sync = 1000;
    c.host.wake_up = 2000;
    c.gpu.start = 500;
    c.gpu.graph_kernel = 800;
    c.gpu.graph_seam = 1200;
    c.gpu.eager_kernel = 1600;
    c.gpu.small_kernel = 600;
    return c;
}

class Timed : public Program {
  public:
    // A launch: the program does `own` before it; recorded, it took 1000.
    cst_op *Go(uint32_t kernel, uint32_t stream, uint32_t gpu_ns = WHATIF_NOT_MEASURED,
               uint64_t own = 0, uint32_t b = 0) {
        Wait(own);
        cst_op *op = Launch(kernel, stream, 0x100, b);
        op->host_ns = 1000;
        gpu_.push_back(gpu_ns);
        return op;
    }
    // A wait that takes `ns` in the recording.
    void WaitFor(uint32_t stream, uint64_t ns = 5000,
                 const std::string &api = "cuStreamSynchronize") {
        Call(CST_CALL_FLUSH, stream, 0, api, CST_SCOPE_T)->host_ns = 1000;
        Call(CST_CALL_STEP_END, stream)->host_ns = 1000;
        Wait(ns);
        Call(CST_CALL_WAITED, stream)->host_ns = 1000;
    }
    void OtherOp(uint32_t gpu_ns = WHATIF_NOT_MEASURED) { gpu_.push_back(gpu_ns); }

    whatif_times Times(const whatif_cost &cost, const char *mode,
                       std::map<std::string, std::string> settings = {},
                       whatif_timing timing = {}) {
        whatif_played played = {};
        std::vector<uint32_t> by_event;
        const cst_trace *trace = Trace();
        size_t op = 0;
        for (size_t i = 0; i < trace->n_events; i++)
            by_event.push_back(trace->events[i]->type == CST_OP ? gpu_[op++] : 0);
        timing.cost = &cost;
        timing.gpu_ns = by_event.data();
        settings["mode"] = mode;
        settings["hold_us"] = "1000000";
        settings.insert({"submit_ns", "0"});
        std::vector<const char *> names, values;
        for (const auto &it : settings) {
            names.push_back(it.first.c_str());
            values.push_back(it.second.c_str());
        }
        whatif_setup setup = {};
        setup.recorded = "";
        setup.names = names.data();
        setup.values = values.data();
        setup.n_settings = names.size();
        setup.timing = &timing;
        char error[512] = "";
        EXPECT_TRUE(whatif_run(trace, &setup, &played, error, sizeof error)) << error;
        return played.times;
    }

  private:
    std::vector<uint32_t> gpu_;
};

} // namespace whatif

#endif
