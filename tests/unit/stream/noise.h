// A machine that disturbs the program, on a clock that the test moves: it stops the program's
// thread at random, halves its pace for a while, and the watchdog looks meanwhile. What happens
// when is in harness/bench/noise_plan.h. What the driver's calls take moves the clock too.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_NOISE_H
#define CUSPLICE_TESTS_UNIT_STREAM_NOISE_H

#include "shim/base/clock.h"
#include "tests/unit/stream/program.h"
#include "tests/unit/stream/times.h"

#include <algorithm>
#include <thread>

extern "C" {
#include "harness/bench/noise_plan.h"
#include "shim/stream/virtual.h"
}

// What the program's thread does.
enum class Thread {
    kRuns,
    kNotRunning, // it could run, and has no processor
    kSleeps,     // it waits for something by itself
    kStopped,    // as are the library's threads (SIGSTOP)
};

struct Noise {
    const char *name;
    unsigned pauses; // in a second
    bool slow;       // half the pace, about half of the time
    Thread stopped;  // kNotRunning or kStopped
    unsigned seed;
};

class Machine {
  public:
    // The fake driver's calls take time from here on. Before the engine starts.
    static void Start() {
        cus_virtual.on = true;
        cus_virtual.ns = 1000000;
        cus_virtual.ran_ns = [](pid_t) { return RanNs(); };
        cus_virtual.runnable = [](pid_t) { return Is() != Thread::kSleeps; };
        look_at_ = paused_ns_ = paused_ = slow_ns_ = slow_until_ = spent_ns_ = 0;
        next_.at_ns = UINT64_MAX;
        auto &table = fake::driver().table;
        launch_ = table.cuLaunchKernel;
        table.cuLaunchKernel = [](auto... arguments) {
            if (!fake::Of(StreamOf(arguments...))->capturing)
                Call(LAUNCH);
            return launch_(arguments...);
        };
        graph_ = table.cuGraphLaunch;
        table.cuGraphLaunch = [](auto... arguments) {
            Call(GRAPH);
            cus_virtual_submit = false;
            return graph_(arguments...);
        };
        patch_ = table.cuGraphExecKernelNodeSetParams_v2;
        table.cuGraphExecKernelNodeSetParams_v2 = [](auto... arguments) {
            Call(PATCH);
            return patch_(arguments...);
        };
        fake::driver().building = [](unsigned nodes) { Call(BUILD + nodes * BUILD_NODE); };
    }
    static void Disturb(const Noise &noise) {
        noise_options options = {};
        options.seed = noise.seed;
        options.stops = noise.pauses;
        options.from_ns = MS / 5;
        options.to_ns = 3 * MS;
        options.slow = noise.slow;
        options.slow_from_ns = 100 * MS;
        options.slow_to_ns = 800 * MS;
        noise_ = noise;
        begun_ = cus_virtual.ns;
        noise_plan_begin(&plan_, &options);
        Next();
    }

    // The program's thread computes for so long at full pace.
    static void Run(uint64_t ns) {
        for (;;) {
            uint64_t now = cus_virtual.ns, pace = now < slow_until_ ? 2 : 1, end = now + ns * pace,
                     event = std::min(next_.at_ns, pace == 2 ? slow_until_ : UINT64_MAX);
            if (end < event)
                return Go(end);
            event = std::max(now, event);
            ns -= std::min(ns, (event - now) / pace);
            Go(event);
            if (event >= next_.at_ns)
                Happens();
        }
    }

    // The clock goes on, and the thread does not. All pauses come from here.
    static void Pause(uint64_t ns, Thread thread) {
        uint64_t end = cus_virtual.ns + ns;
        paused_++;
        ran_until_ = cus_virtual.ns;
        thread_ = thread;
        Go(end);
        thread_ = Thread::kRuns;
        paused_ns_ += ns;
        if (thread == Thread::kStopped)
            Go(end); // the watchdog goes on with the program
    }
    static Thread Is() { return thread_; }
    // The thread's time on a processor, as the kernel counts it.
    static uint64_t RanNs() {
        return (thread_ == Thread::kRuns ? cus_virtual.ns : ran_until_) - paused_ns_;
    }

    static uint64_t PausedNs() { return paused_ns_; }
    static uint64_t Pauses() { return paused_; }
    static uint64_t SlowNs() { return slow_ns_; }
    // What calls of the driver took the program's thread at full pace, and what it waited for the
    // watchdog to end its own.
    static uint64_t SpentNs() { return spent_ns_; }

  private:
    enum : uint64_t { MS = 1000000, LOOK = MS / 2 /* half of hold_us */ };

    // As the watchdog's thread. The program's thread waits if a look ends later.
    static void Go(uint64_t end) {
        while (thread_ != Thread::kStopped && look_at_ <= end) {
            cus_virtual.ns = std::max(cus_virtual.ns, look_at_);
            watches_ = true;
            if (in_call_)
                std::thread(cus_watchdog_look).join();
            else
                cus_watchdog_look();
            watches_ = false;
            look_at_ = cus_virtual.ns + LOOK;
        }
        spent_ns_ += std::max(cus_virtual.ns, end) - end;
        cus_virtual.ns = std::max(cus_virtual.ns, end);
    }
    // In a call of the driver the thread may hold locks of the engine. So a look then comes from
    // another thread.
    static void Call(uint64_t ns) {
        if (watches_) {
            cus_virtual.ns += ns;
            return;
        }
        spent_ns_ += ns;
        in_call_ = true;
        Run(ns);
        in_call_ = false;
    }
    static void Happens() {
        noise_event event = next_;
        Next();
        if (event.kind == NOISE_STOP)
            return Pause(event.for_ns, noise_.stopped);
        slow_until_ = cus_virtual.ns + event.for_ns;
        slow_ns_ += event.for_ns;
    }
    static void Next() {
        next_ = noise_plan_next(&plan_);
        if (next_.at_ns != UINT64_MAX)
            next_.at_ns += begun_;
    }
    template <typename... Rest>
    static CUstream StreamOf(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream stream, Rest...) {
        return stream;
    }

    static inline Noise noise_ = {};
    static inline noise_plan plan_;
    static inline noise_event next_; // on the clock
    static inline uint64_t begun_, slow_until_, look_at_, ran_until_;
    static inline bool in_call_ = false, watches_ = false;
    static inline Thread thread_ = Thread::kRuns;
    static inline uint64_t paused_, paused_ns_, slow_ns_, spent_ns_;
    static inline decltype(cus_driver::cuLaunchKernel) launch_;
    static inline decltype(cus_driver::cuGraphLaunch) graph_;
    static inline decltype(cus_driver::cuGraphExecKernelNodeSetParams_v2) patch_;
};

#endif
