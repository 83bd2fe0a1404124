// Target: the player's work on a trace before it calls the driver: memory, ops, steps, code. If the
// player accepts a trace, every address lies in mapped memory, and every byte of code and inputs is
// there. If it refuses one, the reasons are JSON.
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
#include "tests/fuzz/parse/traces.h"
extern "C" {
#include "harness/player/player.h"
}

// The player ends here for want of memory alone, and nothing that is this small may want so much.
extern "C" void player_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    abort();
}

extern "C" void *player_need(void *memory) {
    CHECK(memory);
    return memory;
}

extern "C" void player_check(CUresult, const char *) {
    CHECK(false); // no driver is called
}

namespace {

// Code that lies in files is looked for in one file of this process's own, which begins with what
// the input says of an ELF file; else nowhere.
void TurnPaths(const cst_trace *trace, const std::string &input, std::vector<cst_module> *turned) {
    static const std::string nowhere = "/proc/self/fd/none";
    size_t elf = input.find("\x7f"
                            "ELF");
    std::string file = InMemory(1, elf == std::string::npos ? "no ELF" : input.substr(elf));
    turned->reserve(trace->replay.n_modules);
    for (uint32_t i = 1; i < trace->replay.n_modules; i++) {
        const cst_module *module = trace->replay.modules[i];
        if (!module || module->form != CST_MODULE_FILE)
            continue;
        const char *path = cst_string(trace, module->file);
        const std::string &to = strlen(path) % 4 ? file : nowhere;
        if (strlen(path) >= to.size()) { // the text is the trace's own copy
            strcpy(const_cast<char *>(path), to.c_str());
            continue;
        }
        turned->push_back(*module);
        turned->back().file = 0; // "": no file has that name
        trace->replay.modules[i] = &turned->back();
    }
}

void CheckMemory(const player &p) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < p.n_runs; i++) {
        const player_run &run = p.runs[i];
        bool reserved = false;
        bytes += run.bytes;
        CHECK(run.bytes && run.address % p.granule == 0 && run.bytes % p.granule == 0);
        CHECK(run.address + run.bytes > run.address);
        CHECK(i == 0 || p.runs[i - 1].address + p.runs[i - 1].bytes < run.address);
        CHECK(player_memory_has(&p, run.address, run.bytes));
        CHECK(!player_memory_has(&p, run.address, run.bytes + 1));
        for (size_t k = 0; k < p.trace->replay.n_spans; k++) {
            const cst_span &span = *p.trace->replay.spans[k];
            reserved |= span.what == CST_SPAN_RESERVED && span.address < run.address + run.bytes &&
                        run.address < span.address + span.bytes;
        }
        CHECK(reserved);
    }
    CHECK(bytes == p.memory_bytes);
}

// An address of an op: in memory, or of a variable.
void CheckAddress(const player &p, const std::set<const void *> &patched, const CUdeviceptr &at,
                  __uint128_t bytes) {
    if (bytes && !patched.count(&at))
        CHECK(bytes <= p.memory_bytes && player_memory_has(&p, at, static_cast<uint64_t>(bytes)));
}

void CheckCopy(const player &p, const std::set<const void *> &patched, const player_op &op) {
    __uint128_t rows = op.work->height > 1 ? op.work->height : 1, bytes = rows * op.work->width;
    CHECK(bytes == op.copy.bytes);
    if (!bytes)
        return;
    if (op.what == PLAYER_UPLOAD)
        CHECK(op.work->input < p.n_inputs && p.input_bytes[op.work->input] >= bytes);
    else
        CheckAddress(p, patched, op.copy.from, bytes);
    if (op.what != PLAYER_DOWNLOAD) {
        CheckAddress(p, patched, op.copy.to, bytes);
        return;
    }
    const player_host &host = p.hosts[reinterpret_cast<uintptr_t>(op.copy.host)];
    uint64_t to = host.span ? op.work->to : 0;
    CHECK(to >= host.from && to + op.copy.bytes <= host.to && to + op.copy.bytes >= to);
}

void CheckLaunch(const player &p, const player_op &op) {
    const cst_code *code = p.trace->replay.codes[op.work->code];
    uint64_t sum = 0;
    CHECK(p.used[code->id] && p.images[code->module].bytes);
    for (uint32_t i = 0; i < code->n_arguments; i++)
        for (uint32_t k = 0; k < cst_code_arguments(code)[i].bytes; k++)
            sum += static_cast<const uint8_t *>(op.launch.params[i])[k];
    for (uint32_t i = 0; op.what == PLAYER_LAUNCH_EX && i < op.launch.config->numAttrs; i++)
        sum += static_cast<unsigned char>(op.launch.config->attrs[i].value.pad[0]);
    CHECK(sum + 1);
}

void CheckMemset(const player &p, const std::set<const void *> &patched, const player_op &op) {
    __uint128_t row = static_cast<__uint128_t>(op.memset.width) * op.memset.elem,
                rows = op.memset.height > 1 ? op.memset.height - 1 : 0;
    CHECK(op.memset.elem == 1 || op.memset.elem == 2 || op.memset.elem == 4);
    CheckAddress(p, patched, op.memset.to, row + rows * op.memset.pitch);
}

void CheckOps(const player &p) {
    std::set<const void *> patched;
    size_t in_steps = 0;
    for (size_t i = 0; i < p.n_patches; i++)
        patched.insert(p.patches[i].word);
    for (size_t i = 0; i < p.n_steps; i++)
        in_steps += p.steps[i].n_ops;
    CHECK(in_steps <= p.n_ops); // what follows the last wait is in none
    for (size_t i = 0; i < p.n_ops; i++) {
        const player_op &op = p.ops[i];
        CHECK(op.work->lane == 0 || p.trace->replay.lanes[op.work->lane]);
        if (op.what <= PLAYER_LAUNCH_COOPERATIVE)
            CheckLaunch(p, op);
        else if (op.what == PLAYER_MEMSET)
            CheckMemset(p, patched, op);
        else if (op.what <= PLAYER_MOVE)
            CheckCopy(p, patched, op);
    }
}

void CheckCode(const player &p) {
    uint64_t sum = 0;
    for (uint32_t i = 1; i < p.trace->replay.n_modules; i++)
        for (uint64_t k = 0; p.images[i].bytes && k < p.trace->replay.modules[i]->bytes; k++)
            sum += static_cast<const unsigned char *>(p.images[i].bytes)[k];
    CHECK(sum + 1);
}

// What it says of the notes is JSON.
void CheckNotes(const notes *notes) {
    CHECK(notes->n <= NOTES);
    std::string text;
    cus_json json = {};
    json.put = [](void *to, const char *bytes, size_t n) {
        static_cast<std::string *>(to)->append(bytes, n);
    };
    json.to = &text;
    json.form = CUS_JSON_TIGHT;
    cus_json_open(&json, nullptr, '{');
    notes_put(notes, &json, "notes");
    cus_json_close(&json, '}');
    CheckJson(text);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::string input = TraceOf(data, size), path = InMemory(0, input);
    char error[300];
    player p = {};
    p.trace = cst_open(path.c_str(), error, sizeof error);
    if (!p.trace)
        return 0;
    std::vector<cst_module> turned;
    TurnPaths(p.trace, input, &turned);
    p.granule = 2 << 20;
    p.may_take = (static_cast<uint64_t>(PLAYER_TAKE_MIB) << 20) + 100 * p.trace->file_bytes;
    p.capability = 90;
    p.pace = static_cast<player_pace>(size % 3);
    strcpy(p.gpu, "Simulated H200");
    player_look(&p);
    CheckNotes(&p.obstacles);
    CheckNotes(&p.warnings);
    CheckMemory(p);
    CheckCode(p);
    if (!p.obstacles.n)
        CheckOps(p);
    player_forget(&p);
    cst_free(p.trace);
    return 0;
}
