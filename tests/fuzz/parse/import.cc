// Target: import, with any bytes as an SQLite file, and with sound databases whose tables, columns,
// types and rows the input chooses. The reader accepts each imported trace with the reported
// contents. import reports a refused database and leaves nothing behind.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <string>
#include <vector>

#include "tests/fuzz/parse/bytes.h"
#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
#include "tests/fuzz/parse/traces.h"
#include "tools/trace/budget.h"
#include "tools/trace/import.h"
#include "tools/trace/model.h"
#include "tools/trace/reader.h"
#include "tools/trace/schema.h"

namespace {

// ---- databases ----

struct Schema {
    std::string name;
    std::vector<std::string> columns;
};

// The first word of each column.
std::vector<std::string> Names(const std::string &columns) {
    std::vector<std::string> names;
    for (size_t at = 0; at != std::string::npos; at = columns.find(',', at + 1)) {
        at = columns.find_first_not_of(", ", at);
        names.push_back(columns.substr(at, columns.find_first_of(" ,", at) - at));
    }
    return names;
}

// Those that import asks for come first, so that small numbers are them.
const std::vector<Schema> &Schemas() {
    static const std::vector<Schema> schemas = [] {
        std::vector<Schema> all = {
            {"CUPTI_ACTIVITY_KIND_KERNEL", {}},
            {"StringIds", {}},
            {"CUPTI_ACTIVITY_KIND_RUNTIME", {}},
            {"CUPTI_ACTIVITY_KIND_MEMCPY", {}},
            {"CUPTI_ACTIVITY_KIND_MEMSET", {}},
            {"META_DATA_EXPORT", {}},
            {"CUSPLICE_CALL", {}},
            {"CUSPLICE_STREAM", {}},
            {"TARGET_INFO_CUDA_STREAM", {}},
            {"TARGET_INFO_CUDA_CONTEXT_INFO", {}},
            {"CUSPLICE_FACTS", {}},
            {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {"correlationId", "streamId", "globalPid"}},
            {"TARGET_INFO_GPU", {"name", "id"}},
        };
#define SCHEMA(table, text)                                                                        \
    for (Schema & schema : all)                                                                    \
        if (schema.name == #table)                                                                 \
            schema.columns = Names(text);
        SCHEMA_TABLES(SCHEMA)
#undef SCHEMA
        return all;
    }();
    return schemas;
}

void Run(sqlite3 *db, const std::string &sql) {
    sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr); // a second table of a name is none
}

void Text(Bytes *in, sqlite3_stmt *insert, int i) {
    static const char *const words[] = {"cudaLaunchKernel_v7000",
                                        "cuLaunchKernel",
                                        "cudaStreamSynchronize_v3020",
                                        "cuMemcpyHtoDAsync_v2",
                                        "cudaMemsetAsync_v3020",
                                        "cuEventQuery",
                                        "cudaFree_v3020",
                                        "cudaGraphLaunch_v10000",
                                        "EXPORT_PRODUCT_NAME",
                                        "EXPORT_SCHEMA_VERSION",
                                        "cusplice",
                                        "base_ns",
                                        "flush",
                                        "step_end",
                                        "created",
                                        "_Z1kPf"};
    std::string text = in->Below(4) ? words[in->Below(16)] : in->Text();
    sqlite3_bind_text(insert, i, text.c_str(), -1, SQLITE_TRANSIENT);
}

void Value(Bytes *in, sqlite3_stmt *insert, int i, bool text) {
    uint8_t sort = in->Byte();
    if (sort < 0xe0 && text)
        Text(in, insert, i);
    else if (sort < 0xe0)
        sqlite3_bind_int64(insert, i, in->Integer());
    else if (sort < 0xf0)
        sqlite3_bind_null(insert, i);
    else if (sort < 0xf4)
        sqlite3_bind_int64(insert, i, in->Integer());
    else if (sort < 0xf8)
        Text(in, insert, i);
    else if (sort < 0xfc)
        sqlite3_bind_double(insert, i, in->Number<double>());
    else
        sqlite3_bind_zeroblob(insert, i, in->Byte());
}

bool HoldsText(const std::string &column) {
    return column == "value" || column == "name" || column == "what" || column == "scope" ||
           column == "kind";
}

void Table(Bytes *in, sqlite3 *db) {
    static const char *const types[] = {"", " INTEGER", " TEXT", " BLOB", " REAL", " INT UNIQUE"};
    const Schema &schema = Schemas()[in->Below(static_cast<unsigned>(Schemas().size()))];
    uint32_t missing = in->Below(4) ? 0 : in->Number<uint32_t>();
    unsigned form = in->Byte(), type = form % 2 ? 1 : in->Below(6);
    std::vector<std::string> columns;
    std::string sql, marks;
    for (size_t i = 0; i < schema.columns.size(); i++)
        if (!(missing >> i % 32 & 1)) {
            columns.push_back(schema.columns[i]);
            sql += (sql.empty() ? "" : ", ") + columns.back() + types[type];
            marks += marks.empty() ? "?" : ",?";
        }
    if (columns.empty())
        return;
    if (form >= 0xf8)
        Run(db, "CREATE VIEW " + schema.name + " AS SELECT * FROM " + Schemas()[form % 4].name);
    else if (form >= 0xf0)
        Run(db, "CREATE TABLE " + schema.name + " (" + sql + ", PRIMARY KEY (" + columns[0] +
                    ")) WITHOUT ROWID");
    else
        Run(db, "CREATE TABLE " + schema.name + " (" + sql + ")");
    sqlite3_stmt *insert = nullptr;
    sql = "INSERT INTO " + schema.name + " VALUES (" + marks + ")";
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &insert, nullptr) != SQLITE_OK)
        return;
    for (unsigned rows = in->Below(8); rows && !in->Empty(); rows--) {
        for (size_t i = 0; i < columns.size(); i++)
            Value(in, insert, static_cast<int>(i + 1), HoldsText(columns[i]));
        sqlite3_step(insert);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
}

std::string Database(Bytes *in) {
    sqlite3 *db = nullptr;
    sqlite3_int64 bytes = 0;
    CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
    Run(db, "PRAGMA page_size = 512");
    if (!in->Below(16))
        Run(db, "PRAGMA encoding = 'UTF-16'");
    Run(db, "BEGIN");
    while (!in->Empty())
        Table(in, db);
    Run(db, "COMMIT");
    unsigned char *image = sqlite3_serialize(db, "main", &bytes, 0);
    std::string file(reinterpret_cast<char *>(image), image ? static_cast<size_t>(bytes) : 0);
    sqlite3_free(image);
    sqlite3_close(db);
    return file;
}

// ---- what comes of them ----

std::string Output() {
    return Folder() + "/out.cst";
}

void CheckTrace(const import_counts &counts) {
    char error[1024];
    uint64_t calls = 0;
    cst_trace *trace = cst_open(Output().c_str(), error, sizeof error);
    if (!trace)
        fprintf(stderr, "%s\n", error);
    CHECK(trace && trace->closed && !trace->torn);
    for (size_t i = 0; i < trace->n_events; i++)
        calls += trace->events[i]->type == CST_CALL;
    CHECK(trace->ops == counts.ops && calls == counts.calls);
    CheckJson(trace->facts);
    model *m = model_make(trace);
    CHECK(m && m->n_ops == counts.ops);
    model_free(m);
    cst_free(trace);
}

void Import(const std::string &file, bool graphs, uint64_t pid) {
    std::string from = OnDisk(file), to = Output();
    import_options options = {from.c_str(), to.c_str(), false, graphs, pid};
    import_counts counts;
    char error[1024] = "";
    bool done = import_file(&options, &counts, error, sizeof error);
    if (done)
        CheckTrace(counts);
    else
        CHECK((strncmp(error, options.from, from.size()) == 0 && strlen(error) > from.size() + 2) ||
              strncmp(error, options.to, to.size()) == 0);
    CHECK((unlink(options.to) == 0) == done);
    CheckNothingElse();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget_memory(0); // the fuzzer has bounds of its own, for each input
    budget_seconds(0);
    if (size >= 16 && memcmp(data, "SQLite format 3", 16) == 0) {
        Import(std::string(reinterpret_cast<const char *>(data), size), false, 0);
        return 0;
    }
    Bytes in(data, size);
    uint8_t options = in.Byte();
    Import(Database(&in), options & 1, options & 2 ? 1 + options / 64 : 0);
    return 0;
}
