// Target: a trace that is damaged, read as `cusplice repair` reads it, and written as a whole one.
// What is written is sound, and says what was found.
//
// The last byte of an input says how many damages there are, and six bytes in front of it are one:
// where it is, how long, and what becomes of the bytes there. What is in front of them is a trace
// as the other targets take it, with the right checksums, so that blocks between damages are sound.
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/parse/bytes.h"
#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
#include "tests/fuzz/parse/traces.h"
extern "C" {
#include "tools/trace/budget.h"
#include "tools/trace/look.h"
#include "tools/trace/trim.h"
}

namespace {

constexpr size_t kDamage = 6, kDamages = 8;

void Damage(std::string *file, Bytes *by) {
    size_t at = by->Number<uint16_t>(), length = by->Number<uint16_t>();
    uint8_t how = by->Byte(), change = by->Byte();
    at = file->empty() ? 0 : at % file->size();
    switch (how % 4) {
    case 0: // a byte that changed
        if (!file->empty())
            (*file)[at] = static_cast<char>((*file)[at] ^ change);
        return;
    case 1: // a hole
        for (size_t i = at; i < file->size() && i < at + length; i++)
            (*file)[i] = 0;
        return;
    case 2: // a part that is missing
        file->erase(at, length);
        return;
    default: // an end that is missing
        file->resize(at);
    }
}

std::string Damaged(const uint8_t *data, size_t size) {
    size_t n = size ? data[size - 1] % (kDamages + 1) : 0;
    size_t behind = size ? 1 + n * kDamage : 0;
    if (behind > size)
        return TraceOf(data, size);
    std::string file = TraceOf(data, size - behind);
    Bytes by(data + size - behind, behind);
    for (; n; n--)
        Damage(&file, &by);
    return file;
}

void CheckDamage(const cst_trace *trace) {
    const cst_damage &damage = trace->damage;
    CHECK(damage.bytes <= trace->file_bytes);
    CHECK((damage.places == 0) <= (damage.bytes == 0));
    CHECK(damage.ops <= damage.records);
    for (size_t i = 1; i < trace->n_events; i++)
        CHECK(trace->events[i - 1]->ns <= trace->events[i]->ns);
}

// What is whole is read without salvage, with as many ops. Without one repair writes nothing.
void Write(const look *of) {
    selection all;
    trim_result result;
    char error[1024];
    std::string out = Folder() + "/out";
    if (select_steps(of, 0, false, 0, 0, &all, error, sizeof error) && of->model->n_ops) {
        all.ranged = true;
        CHECK(trim_write(of, &all, "{\"repaired\": true}", {(of->trace->ops & 1) != 0, false},
                         out.c_str(), &result, error, sizeof error));
        look again;
        CHECK(look_open(&again, out.c_str(), NAMES_BASE, error, sizeof error));
        CHECK(again.trace->closed && !again.trace->torn);
        CHECK(again.trace->ops == result.ops && again.model->n_ops == result.ops);
        CHECK(again.trace->lost_ops >= of->trace->lost_ops);
        CheckJson(again.trace->facts);
        look_close(&again);
        CHECK(unlink(out.c_str()) == 0);
    }
    select_free(&all);
    CheckNothingElse();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget_memory(0); // the fuzzer has bounds of its own, for each input
    budget_seconds(0);
    std::string path = OnDisk(Damaged(data, size));
    char error[1024];
    cst_bounds bounds = {};
    bounds.salvage = true;
    cst_trace *trace = cst_open_within(path.c_str(), &bounds, error, sizeof error);
    if (!trace) {
        CHECK(strncmp(error, path.c_str(), path.size()) == 0 && strlen(error) > path.size() + 2);
        return 0;
    }
    CheckDamage(trace);
    cst_free(trace);
    look of;
    CHECK(look_salvage(&of, path.c_str(), error, sizeof error));
    Write(&of);
    look_close(&of);
    return 0;
}
