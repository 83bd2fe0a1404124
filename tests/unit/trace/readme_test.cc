// Promise: the tables of shim/trace/README.md list every field of every struct of format.h, with
// offset and length, in order, and nothing else.
#include <gtest/gtest.h>
#include <stddef.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/unit/trace/synth.h"

namespace {

struct Field {
    size_t offset, size;
    std::string name;
    bool operator==(const Field &o) const {
        return offset == o.offset && size == o.size && name == o.name;
    }
};

std::ostream &operator<<(std::ostream &out, const Field &f) {
    return out << f.offset << "+" << f.size << " " << f.name;
}

#define F(type, field)                                                                             \
    { offsetof(struct type, field), sizeof(static_cast<struct type *>(nullptr)->field), #field }

const std::map<std::string, std::vector<Field>> structs = {
    {"cst_file",
     {F(cst_file, magic), F(cst_file, version), F(cst_file, mark), F(cst_file, reserved)}},
    {"cst_block",
     {F(cst_block, type), F(cst_block, flags), F(cst_block, bytes), F(cst_block, raw),
      F(cst_block, check)}},
    {"cst_record",
     {F(cst_record, type), F(cst_record, flags), F(cst_record, words), F(cst_record, thread),
      F(cst_record, ns)}},
    {"cst_string", {F(cst_string, head), F(cst_string, id), F(cst_string, bytes)}},
    {"cst_thread", {F(cst_thread, head), F(cst_thread, tid), F(cst_thread, name)}},
    {"cst_stream",
     {F(cst_stream, head), F(cst_stream, id), F(cst_stream, context), F(cst_stream, handle),
      F(cst_stream, kind), F(cst_stream, flags), F(cst_stream, priority), F(cst_stream, device)}},
    {"cst_range",
     {F(cst_range, head), F(cst_range, context), F(cst_range, result), F(cst_range, asked),
      F(cst_range, start), F(cst_range, size), F(cst_range, type), F(cst_range, managed),
      F(cst_range, device), F(cst_range, own)}},
    {"cst_kind",
     {F(cst_kind, head), F(cst_kind, id), F(cst_kind, op), F(cst_kind, flags), F(cst_kind, name),
      F(cst_kind, file), F(cst_kind, elem), F(cst_kind, form), F(cst_kind, param_bytes),
      F(cst_kind, cluster), F(cst_kind, n_arguments), F(cst_kind, n_attributes),
      F(cst_kind, reserved), F(cst_kind, handle)}},
    {"cst_argument", {F(cst_argument, offset), F(cst_argument, bytes)}},
    {"cst_attribute", {F(cst_attribute, id), F(cst_attribute, bytes), F(cst_attribute, value)}},
    {"cst_op",
     {F(cst_op, head), F(cst_op, kind), F(cst_op, stream), F(cst_op, host_ns), F(cst_op, result),
      F(cst_op, eager), F(cst_op, why), F(cst_op, dims), F(cst_op, abi)}},
    {"cst_call",
     {F(cst_call, head), F(cst_call, name), F(cst_call, stream), F(cst_call, what),
      F(cst_call, scope), F(cst_call, abi), F(cst_call, reserved), F(cst_call, host_ns),
      F(cst_call, value)}},
    {"cst_flush",
     {F(cst_flush, head), F(cst_flush, stream), F(cst_flush, n), F(cst_flush, cause),
      F(cst_flush, reason)}},
    {"cst_launch",
     {F(cst_launch, head), F(cst_launch, stream), F(cst_launch, n), F(cst_launch, segment),
      F(cst_launch, variant), F(cst_launch, patched), F(cst_launch, host_ns),
      F(cst_launch, build_ns), F(cst_launch, bytes)}},
    {"cst_branch", {F(cst_branch, head), F(cst_branch, stream), F(cst_branch, n)}},
    {"cst_segment",
     {F(cst_segment, head), F(cst_segment, id), F(cst_segment, stream), F(cst_segment, n),
      F(cst_segment, reserved)}},
    {"cst_lost", {F(cst_lost, head), F(cst_lost, records), F(cst_lost, ops)}},
    {"cst_gpu",
     {F(cst_gpu, head), F(cst_gpu, gpu_ns), F(cst_gpu, device), F(cst_gpu, context),
      F(cst_gpu, gpu_stream), F(cst_gpu, correlation), F(cst_gpu, name), F(cst_gpu, grid),
      F(cst_gpu, bytes), F(cst_gpu, node)}},
    {"cst_gpu_stream",
     {F(cst_gpu_stream, head), F(cst_gpu_stream, stream), F(cst_gpu_stream, gpu_stream)}},
    {"cst_gpu_context",
     {F(cst_gpu_context, head), F(cst_gpu_context, stream), F(cst_gpu_context, context)}},
    {"cst_data", {F(cst_data, of), F(cst_data, id), F(cst_data, offset), F(cst_data, bytes)}},
    {"cst_module",
     {F(cst_module, head), F(cst_module, id), F(cst_module, form), F(cst_module, library),
      F(cst_module, file), F(cst_module, build_id), F(cst_module, reserved), F(cst_module, offset),
      F(cst_module, bytes), F(cst_module, check)}},
    {"cst_code",
     {F(cst_code, head), F(cst_code, id), F(cst_code, module), F(cst_code, name),
      F(cst_code, kernel), F(cst_code, n_arguments), F(cst_code, n_attributes),
      F(cst_code, param_bytes), F(cst_code, reserved)}},
    {"cst_setting", {F(cst_setting, attribute), F(cst_setting, value)}},
    {"cst_span",
     {F(cst_span, head), F(cst_span, what), F(cst_span, module), F(cst_span, name),
      F(cst_span, gone), F(cst_span, address), F(cst_span, bytes)}},
    {"cst_lane",
     {F(cst_lane, head), F(cst_lane, id), F(cst_lane, kind), F(cst_lane, flags),
      F(cst_lane, priority)}},
    {"cst_work",
     {F(cst_work, head), F(cst_work, gap_ns), F(cst_work, lane), F(cst_work, code),
      F(cst_work, dims), F(cst_work, n_attributes), F(cst_work, cooperative), F(cst_work, elem),
      F(cst_work, value), F(cst_work, input), F(cst_work, to_host), F(cst_work, sync),
      F(cst_work, to), F(cst_work, from), F(cst_work, width), F(cst_work, height),
      F(cst_work, pitch), F(cst_work, event)}},
    {"cst_check",
     {F(cst_check, head), F(cst_check, address), F(cst_check, bytes), F(cst_check, check)}},
    {"cst_obstacle", {F(cst_obstacle, head), F(cst_obstacle, call), F(cst_obstacle, why)}},
};

const std::map<std::string, size_t> sizes = {
    {"cst_file", sizeof(struct cst_file)},
    {"cst_block", sizeof(struct cst_block)},
    {"cst_record", sizeof(struct cst_record)},
    {"cst_string", sizeof(struct cst_string)},
    {"cst_thread", sizeof(struct cst_thread)},
    {"cst_stream", sizeof(struct cst_stream)},
    {"cst_range", sizeof(struct cst_range)},
    {"cst_kind", sizeof(struct cst_kind)},
    {"cst_argument", sizeof(struct cst_argument)},
    {"cst_attribute", sizeof(struct cst_attribute)},
    {"cst_op", sizeof(struct cst_op)},
    {"cst_call", sizeof(struct cst_call)},
    {"cst_flush", sizeof(struct cst_flush)},
    {"cst_launch", sizeof(struct cst_launch)},
    {"cst_branch", sizeof(struct cst_branch)},
    {"cst_segment", sizeof(struct cst_segment)},
    {"cst_lost", sizeof(struct cst_lost)},
    {"cst_gpu", sizeof(struct cst_gpu)},
    {"cst_gpu_stream", sizeof(struct cst_gpu_stream)},
    {"cst_gpu_context", sizeof(struct cst_gpu_context)},
    {"cst_data", sizeof(struct cst_data)},
    {"cst_module", sizeof(struct cst_module)},
    {"cst_code", sizeof(struct cst_code)},
    {"cst_setting", sizeof(struct cst_setting)},
    {"cst_span", sizeof(struct cst_span)},
    {"cst_lane", sizeof(struct cst_lane)},
    {"cst_work", sizeof(struct cst_work)},
    {"cst_check", sizeof(struct cst_check)},
    {"cst_obstacle", sizeof(struct cst_obstacle)},
};

std::map<std::string, std::vector<Field>> Tables() {
    std::map<std::string, std::vector<Field>> tables;
    std::istringstream text(ReadFile("shim/trace/README.md"));
    std::string line, current;
    while (std::getline(text, line)) {
        if (line.compare(0, 11, "### struct ") == 0)
            current = line.substr(11);
        else if (line.compare(0, 3, "## ") == 0 || line.compare(0, 11, "| block | p") == 0 ||
                 line.compare(0, 10, "| type | r") == 0)
            current.clear();
        size_t offset, size;
        char name[64];
        if (!current.empty() &&
            sscanf(line.c_str(), "| %zu | %zu | %63[a-z_] |", &offset, &size, name) == 3)
            tables[current].push_back({offset, size, name});
    }
    return tables;
}

TEST(Readme, TablesAreTheStructsFieldByField) {
    auto tables = Tables();
    EXPECT_EQ(tables.size(), structs.size());
    for (const auto &[name, fields] : structs)
        EXPECT_EQ(tables[name], fields) << name;
}

// That the list above leaves no field out, and that no struct has padding without a name.
TEST(Readme, FieldsFillTheirStructs) {
    for (const auto &[name, fields] : structs) {
        size_t at = 0;
        for (const Field &field : fields) {
            EXPECT_EQ(field.offset, at) << name << "." << field.name;
            at = field.offset + field.size;
        }
        EXPECT_EQ(at, sizes.at(name)) << name;
        EXPECT_EQ(at % 8, 0u) << name;
    }
}

TEST(Readme, EveryRecordTypeIsListedWithItsNumber) {
    std::string text = ReadFile("shim/trace/README.md");
    const std::pair<int, const char *> types[] = {{CST_STRING, "cst_string"},
                                                  {CST_THREAD, "cst_thread"},
                                                  {CST_STREAM, "cst_stream"},
                                                  {CST_KIND, "cst_kind"},
                                                  {CST_RANGE, "cst_range"},
                                                  {CST_OP, "cst_op"},
                                                  {CST_CALL, "cst_call"},
                                                  {CST_FLUSH, "cst_flush"},
                                                  {CST_LAUNCH, "cst_launch"},
                                                  {CST_BRANCH, "cst_branch"},
                                                  {CST_SEGMENT, "cst_segment"},
                                                  {CST_LOST, "cst_lost"},
                                                  {CST_GPU, "cst_gpu"},
                                                  {CST_GPU_STREAM, "cst_gpu_stream"},
                                                  {CST_GPU_CONTEXT, "cst_gpu_context"},
                                                  {CST_MODULE, "cst_module"},
                                                  {CST_CODE, "cst_code"},
                                                  {CST_SPAN, "cst_span"},
                                                  {CST_LANE, "cst_lane"},
                                                  {CST_WORK, "cst_work"},
                                                  {CST_CHECK, "cst_check"},
                                                  {CST_OBSTACLE, "cst_obstacle"}};
    for (const auto &[type, name] : types) {
        std::string row = "| " + std::to_string(type) + " | " + name + " |";
        EXPECT_NE(text.find(row), std::string::npos) << row;
        EXPECT_NE(text.find("| head | type " + std::to_string(type)), std::string::npos) << row;
    }
    EXPECT_NE(text.find(" 20 waited, 21 event seen: "), std::string::npos);
    EXPECT_NE(text.find(", 22 event gone: "), std::string::npos);
    EXPECT_EQ(int{CST_CALL_WAITED}, 20);
    EXPECT_EQ(int{CST_CALLS}, 23);
}

} // namespace
