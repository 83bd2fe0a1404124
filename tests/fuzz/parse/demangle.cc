// Target: names of kernels in their three forms, with any text. The results are bounded.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/traces.h"
#include "tools/trace/demangle.h"
#include "tools/trace/names.h"
#include "tools/trace/reader.h"

namespace {

template <class T> std::string Record(T record, cst_type type, const std::string &behind = "") {
    size_t bytes = (sizeof record + behind.size() + 7) / 8 * 8;
    record.head.type = static_cast<uint8_t>(type);
    record.head.words = static_cast<uint16_t>(bytes / 8);
    std::string text(reinterpret_cast<const char *>(&record), sizeof record);
    text += behind;
    text.resize(bytes);
    return text;
}

// A trace of one kernel, and of a memset, whose names are no mangled ones whatever they say.
std::string Trace(const std::string &name) {
    struct cst_string string = {};
    cst_kind kind = {};
    string.id = 1;
    string.bytes = static_cast<uint32_t>(name.size());
    kind.id = 1;
    kind.name = 1;
    std::string records = Record(string, CST_STRING, name) + Record(kind, CST_KIND);
    kind.id = 2;
    kind.op = CST_OP_MEMSET;
    records += Record(kind, CST_KIND);
    return TraceOf(reinterpret_cast<const uint8_t *>(records.data()), records.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::string name = std::string(reinterpret_cast<const char *>(data), size).c_str();
    char *made = demangle(name.c_str()), error[300];
    CHECK(!made || strlen(made) < DEMANGLE_TO);
    free(made);
    cst_trace *trace = cst_open(InMemory(0, Trace(name)).c_str(), error, sizeof error);
    CHECK(trace && trace->n_kinds == 3);
    for (names_form form : {NAMES_BASE, NAMES_DEMANGLED, NAMES_MANGLED}) {
        names *names = names_make(trace, form);
        CHECK(names && *names_of(names, 0) && *names_of(names, 3));
        const char *shown = names_of(names, 1);
        CHECK(shown == names_of(names, 1) && *shown);
        CHECK(strlen(shown) < DEMANGLE_TO + 2 * name.size());
        CHECK(form != NAMES_MANGLED || name.empty() || name == shown);
        CHECK(name.empty() || name == names_of(names, 2));
        names_free(names);
    }
    cst_free(trace);
    return 0;
}
