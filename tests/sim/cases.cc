// The table of cases, and the way to run one. Runs on the test's thread.
#include "tests/sim/cases.h"

#include <stdlib.h>
#include <unistd.h>

#include <sstream>

namespace sim {

namespace {

constexpr CompareRules kAnyStream = {true, false};
constexpr CompareRules kAnyOp = {false, true};
constexpr CompareRules kAnyBoth = {true, true};
constexpr CompareRules kBranches = {false, false, true};

std::string LastLines(const std::string &text, size_t bytes) {
    return text.size() > bytes ? "..." + text.substr(text.size() - bytes) : text;
}

std::string Trim(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

Case Random(const char *name, int seed, int steps) {
    Case c = {name, 0, "", "", kBranches};
    c.args = {"--seed", std::to_string(seed), "--steps", std::to_string(steps)};
    if (c.name == "random_threads") {
        c.rules.any_stream_order = true;
    }
    return c;
}

std::vector<Case> MakeCases() {
    // Programs that never synchronise are given more steps: there a step is found only once the row
    // has repeated itself.
    std::vector<Case> cases = {
        {"decode_loop", 60, "", "", {}},
        {"decode_legacy", 55, "", "", {}},
        {"two_streams", 0, "", "", kBranches},
        {"streams_interleaved", 0, "", "", kBranches},
        {"legacy_blocking", 0, "", "", {}},
        {"legacy_nonblocking", 0, "", "", {}},
        {"legacy_barriers", 0, "", "", {}},
        {"legacy_aliases", 0, "", "", {}},
        {"stream_recreate", 0, "", "", {}},
        {"many_streams", 0, "", "", {}},
        {"stream_values", 0, "", "", {}},
        {"value_host", 0, "", "", {}},
        {"spin_pair", 0, "", "", {}},
        {"spin_behind", 0, "", "", {}},
        {"resident", 0, "", "", {}},
        {"resident_oom", 0, "", "", {}},
        {"resident_process", 0, "", "", {}},
        {"capture_once", 30, "", "", {}},
        {"capture_each_step", 0, "", "", {}},
        {"capture_pending_legacy", 0, "", "", {}},
        {"capture_other_thread", 0, "", "", {}},
        {"capture_global", 0, "", "", {}},
        {"capture_failing", 30, "", "", {}},
        {"capture_fork_join", 0, "", "", {}},
        {"capture_unknown", 20, "", "", {}},
        {"graph_program", 30, "", "", {}},
        {"steady", 70, "", "", {}},
        {"launch_bound", 80, "", "", {}, true, {"--steps", "40"}}, // 256 of 1000 nodes are built in
                                                                   // a step
        {"matched", 70, "", "", {}, true, {"--steps", "12"}},
        {"soak", 40, "", "", {}},
        {"long_short", 60, "", "", {}},
        {"batch_sizes", 60, "", "", {}},
        {"batch_turns", 60, "", "", {}},
        {"moving_buffers", 40, "", "", {}, true, {"--steps", "120"}},
        {"growing_grid", 60, "", "", {}},
        {"block_smem", 30, "", "", {}},
        {"diverge_replace", 40, "", "", {}},
        {"diverge_insert", 40, "", "", {}},
        {"diverge_length", 50, "", "", {}},
        {"diverge_branch", 50, "", "", {}},
        {"swap_functions", 40, "", "", {}},
        {"moving_sync", 0, "", "", {}},
        {"never_repeat", 0, "", "", {}},
        {"never_sync", 60, "", "", {}},
        {"eager_tenth", 55, "", "", {}},
        {"poll_pinned", 30, "", "", {}, true, {"--steps", "600"}},
        {"poll_managed", 0, "", "", {}},
        {"lock_waits", 0, "", "", {}},
        {"poll_copy", 30, "", "", {}, true, {"--steps", "600"}},
        {"poll_fifo", 0, "", "", {}},
        {"poll_rr", 0, "", "", {}},
        {"poll_moved", 0, "", "", {}},
        {"stream_query", 50, "", "", {}},
        {"event_query", 40, "", "cuEventRecord", {}},
        {"event_loop", 70, "", "", {}},
        {"event_reuse", 60, "", "", kBranches},
        {"event_recreate", 85, "", "", {}, true, {"--steps", "400"}},
        {"event_across", 40, "", "", {}},
        {"event_threads", 15, "", "", {}},
        {"event_elapsed", 70, "", "", {}},
        {"event_graphs", 60, "", "", {}},
        {"event_capture", 70, "", "", {}},
        {"fork_layers", 74, "", "cuStreamWaitEvent", kBranches},
        {"fork_events", 84, "", "cuStreamWaitEvent", kBranches},
        {"fork_wait_stream", 83, "", "cuStreamWaitEvent", kBranches},
        {"fork_two", 83, "", "cuStreamWaitEvent", kBranches},
        {"fork_nested", 17, "", "", kBranches},
        {"fork_open", 72, "", "", kBranches},
        {"fork_late", 79, "", "", kBranches, true, {}, 0, 70},
        {"fork_old", 63, "", "", kBranches},
        {"fork_poll", 58, "", "", kBranches},
        {"fork_thread", 12, "", "", kBranches},
        {"fork_moves", 70, "", "", kBranches},
        {"fork_priority", 20, "", "", {}},
        {"fork_blocking", 58, "", "", kBranches},
        {"fork_legacy", 60, "", "", kBranches, true, {"--steps", "100"}},
        {"fork_trailing", 70, "", "", kBranches},
        {"fork_diverge", 82, "", "", kBranches},
        {"fork_capture", 50, "", "", kBranches},
        {"fork_memory", 21, "", "", kBranches},
        {"fork_free", 58, "", "", kBranches},
        {"fork_again", 12, "", "", kBranches},
        {"fork_given", 55, "", "", kBranches},
        {"fork_waits", 65, "", "", kBranches},
        {"fork_spin", 52, "", "", kBranches},
        {"host_func", 20, "", "", {}, true, {"--steps", "200"}},
        {"host_func_two", 0, "", "", {}},
        {"sleepy_host", 40, "", "", {}},
        {"memsets", 20, "", "", {}},
        {"memsets_2d", 50, "", "", {}},
        {"memset_pinned", 20, "", "", {}},
        {"copies", 30, "", "", {}},
        {"copies_sync", 40, "", "", {}},
        {"copies_registered", 0, "", "", {}},
        {"copies_2d", 40, "", "", {}},
        {"copy_back", 40, "", "", {}},
        {"families", 0, "", "", {}},
        {"free_reuse", 0, "", "", {}},
        {"memory_late", 0, "", "", {}},
        {"free_memory", 40, "", "", {}},
        {"pool_memory", 0, "", "", {}},
        {"pool_loop", 40, "", "", {}},
        {"pool_own", 60, "", "cuMemAllocFromPoolAsync", {}},
        {"pool_changes", 20, "", "", {}},
        {"pool_limits", 0, "", "", {}},
        {"tokens", 50, "", "cuMemcpyHtoDAsync_v2", {}},
        {"virtual_memory", 40, "", "", {}},
        {"managed", 0, "", "", {}},
        {"threads", 20, "", "", {}},
        {"threads_bound", 0, "", "", {}}, // its share: scenario_test, Threads
        {"thread_handover", 0, "", "", {}},
        {"thread_sync_other", 0, "", "", {}},
        {"thread_pester", 0, "", "", {}},
        {"copy_asleep", 0, "", "", {}},
        {"thread_waits", 30, "", "", {}, true, {"--steps", "16"}},
        {"thread_writes", 0, "", "", {}},
        {"thread_leaves", 0, "", "", {}},
        {"ptds", 0, "", "", kAnyStream},
        {"ptds_legacy", 0, "", "", kAnyStream},
        {"app_marks", 50, "", "", {}},
        {"many_params", 60, "", "", {}},
        {"extra_form", 60, "", "", {}},
        {"launch_ex", 0, "", "", {}},
        {"programmatic", 40, "", "", {}},
        {"cooperative", 0, "", "", {}},
        {"handles", 60, "", "", {}},
        {"func_attribute", 0, "", "", {}},
        {"errors", 50, "", "", {}},
        {"errors_memory", 40, "", "", {}},
        {"errors_context", 40, "", "", {}},
        {"sticky_error", 20, "", "", {}},
        {"lost_context", 40, "", "", {}},
        {"thread_hangs", 20, "", "", {}},
        {"module_reload", 40, "", "", {}},
        {"library_reload", 40, "", "", {}},
        {"two_contexts", 20, "", "", {}},
        {"two_contexts_kernel", 0, "", "", {}},
        {"two_devices", 0, "", "", {}},
        {"primary_reset", 20, "", "", {}},
        {"primary_release", 20, "", "", {}},
        {"primary_pair", 90, "", "cuDevicePrimaryCtxRelease_v2", {}},
        {"fork", 30, "", "", {}},
        {"exit_pending", 40, "", "", {}, false, {}, 5},
        {"exit_handler", 30, "", "", {}, true, {}, 6},
        {"exit_forked", 80, "", "", kBranches, false},
        {"exit_thread", 40, "", "", {}, false, {}, 7},
        {"exit_quick", 0, "", "", {}, false, {}, 8},
        {"unknown_calls", 20, "", "", {}},
        {"core_dumps", 0, "", "", {}},
        {"unsteady", 40, "", "", {}},
        {"idle", 0, "", "", {}},
    };
    (void)kAnyOp, (void)kAnyBoth;
    for (int seed = 1; seed <= 10; seed++) {
        cases.push_back(Random("random", seed, 30));
    }
    for (int seed = 1; seed <= 4; seed++) {
        cases.push_back(Random("random_threads", seed, 20));
    }
    return cases;
}

std::string Preload(const std::string &library) {
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    return first && *first ? std::string(first) + ":" + library : library;
}

std::map<std::string, std::string> BaseEnv(const std::string &dir) {
    // The simulator lies in the folder of its libcuda.so.1.
    std::string libcuda = Runfile("harness/sim/lib/libcuda.so.1");
    std::map<std::string, std::string> env = {
        {"LD_LIBRARY_PATH", libcuda.substr(0, libcuda.rfind('/'))},
        {"CUSIM_LOG", dir + "/log"},
        {"CUSIM_STATS", dir + "/calls"},
        {"XDG_CONFIG_HOME", dir},
        {"XDG_RUNTIME_DIR", dir},
        {"CUSIM_DEVICES", "2"},
        // The same graphs are built in the same steps, however slow the machine is.
        {"CUSPLICE_BUILD_US", "0"},
        // They are launched by the program's own threads.
        {"CUSPLICE_SUBMIT_NS", "0"},
        {"ASAN_OPTIONS", "detect_leaks=0:exitcode=99"},
        {"TSAN_OPTIONS",
         "exitcode=98:die_after_fork=0:suppressions=" + Runfile("tests/sim/tsan.supp")},
        {"UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1:exitcode=97"},
    };
    if (const char *hazard = getenv("CUSPLICE_MUTATE")) { // tools/mutate-hazards
        env["CUSPLICE_MUTATE"] = hazard;
    }
    if (const char *without = getenv("CUSPLICE_WITHOUT")) { // --config=ablate
        env["CUSPLICE_WITHOUT"] = without;
    }
    return env;
}

} // namespace

std::string Case::Title() const {
    std::string title = name;
    for (size_t i = 0; i + 1 < args.size(); i++) {
        if (args[i] == "--seed") {
            title += "_" + args[i + 1];
        }
    }
    return title;
}

void PrintTo(const Case &c, std::ostream *out) {
    *out << c.Title();
}

const std::vector<Case> &Cases() {
    static const std::vector<Case> cases = MakeCases();
    return cases;
}

const Case &CaseOf(const std::string &name) {
    for (const auto &c : Cases()) {
        if (c.name == name) {
            return c;
        }
    }
    abort(); // a mistake in the test itself
}

std::string Outcome::Describe() const {
    std::ostringstream text;
    text << "status " << result.status << (result.timed_out ? " (timed out)" : "") << " after "
         << result.seconds << " s\nstdout:\n"
         << LastLines(result.out, 2000) << "stderr:\n"
         << LastLines(result.err, 4000);
    return text.str();
}

Outcome RunProgram(const std::vector<std::string> &command, const Setting &setting) {
    Outcome outcome;
    std::string dir = TempDir();
    Child child;
    child.command = command;
    child.timeout_s = setting.timeout_s * (Sanitizer().empty() ? 1 : 4);
    child.env = BaseEnv(dir);
    if (setting.preload) {
        std::string library = setting.library.empty() ? "shim/libcusplice.so" : setting.library;
        const char *release = getenv("CUS_TEST_LIBRARY"); // tools/release --check
        child.env["LD_PRELOAD"] =
            Preload(release && setting.library.empty() ? release : Runfile(library));
        child.env["CUSPLICE_STATS"] = dir + "/stats";
    }
    for (const auto &entry : setting.env) {
        child.env[entry.first] = entry.second;
    }
    outcome.result = Run(child);
    outcome.log = ParseLog(ReadFile(dir + "/log"));
    outcome.stats = ParseJson(ReadFile(dir + "/stats"));
    outcome.calls = ParseJson(ReadFile(dir + "/calls"));
    for (const char *name : {"/log", "/calls", "/stats"}) {
        unlink((dir + name).c_str());
    }
    rmdir(dir.c_str());
    return outcome;
}

std::vector<std::string> DecodeHost(const std::vector<std::string> &args) {
    std::vector<std::string> command = {Runfile("harness/decode/decode"), "--model",
                                        Runfile("harness/decode/model/austen.bin")};
    command.insert(command.end(), args.begin(), args.end());
    return command;
}

Outcome RunCase(const Case &c, const Setting &setting) {
    std::vector<std::string> command = {Runfile(setting.binary), c.name};
    command.insert(command.end(), c.args.begin(), c.args.end());
    command.insert(command.end(), setting.args.begin(), setting.args.end());
    return RunProgram(command, setting);
}

std::string Compare(const Case &c, const Outcome &expected, const Outcome &actual) {
    if (actual.result.timed_out) {
        return "it did not end: " + actual.Describe();
    }
    if (expected.result.status != actual.result.status) {
        return "exit status " + std::to_string(actual.result.status) + " instead of " +
               std::to_string(expected.result.status) + ": " + actual.Describe();
    }
    if (expected.result.out != actual.result.out) {
        return "another output\nexpected:\n" + expected.result.out + "actual:\n" +
               actual.Describe();
    }
    if (c.log_whole) {
        std::string difference = CompareLogs(expected.log, actual.log, c.rules);
        if (!difference.empty()) {
            return "another log: " + difference;
        }
    }
    return "";
}

testing::AssertionResult IsNothing(const char *, const std::string &difference) {
    return difference.empty() ? testing::AssertionSuccess()
                              : testing::AssertionFailure() << difference;
}

std::string CheckStats(const Outcome &preloaded) {
    const Json &s = preloaded.stats;
    if (!s.valid) {
        return "no stats file, or not JSON: " + preloaded.Describe();
    }
    for (const char *field : {"version",
                              "pid",
                              "exe",
                              "mode",
                              "ops.launches",
                              "ops.memsets",
                              "ops.copies",
                              "issued.in_graphs",
                              "issued.eager",
                              "eager_by.rule",
                              "eager_by.observing",
                              "eager_by.diverged",
                              "eager_by.flushed",
                              "eager_by.unsupported",
                              "eager_by.passthrough",
                              "graph_launches",
                              "segments_formed",
                              "runs",
                              "signatures.exact",
                              "signatures.patched",
                              "signatures.missed",
                              "patched_nodes",
                              "graph_bytes",
                              "build_us"}) {
        if (!s.Has(field)) {
            return std::string("the stats file lacks ") + field;
        }
    }
    double ops = s.Sum("ops"), in_graphs = s.Number("issued.in_graphs"),
           eager = s.Number("issued.eager");
    if (ops != in_graphs + eager) {
        return "ops " + Trim(ops) + " are not in_graphs " + Trim(in_graphs) + " + eager " +
               Trim(eager);
    }
    if (eager != s.Sum("eager_by")) {
        return "eager " + Trim(eager) + " is not the sum of eager_by " + Trim(s.Sum("eager_by"));
    }
    double launched = s.Number("graph_launches");
    double called =
        preloaded.calls.Number("cuGraphLaunch") + preloaded.calls.Number("cuGraphLaunch_ptsz");
    if (preloaded.calls.valid &&
        launched > called) { // a program that ends by quick_exit leaves no count
        return "graph_launches " + Trim(launched) + ", but the driver saw " + Trim(called);
    }
    if ((in_graphs > 0) != (launched > 0)) {
        return "in_graphs " + Trim(in_graphs) + " with graph_launches " + Trim(launched);
    }
    return "";
}

} // namespace sim
