// Promise: cusplice export writes the right contents in each format, for traces that are made here.
// It refuses what it must refuse.
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "tests/export/make.h"
#include "tests/export/query.h"
#include "tests/launcher/launcher.h"

namespace {

// No UTF-8: a lone byte, a surrogate, an overlong form, beyond the last character.
const char kOdd[] = "a\"b\\\xff\n \xed\xa0\x80 \xe0\x80\x80 \xf4\x90\x80\x80 \xc3\xa9";
const char kScaled[] = "_ZN3app6scaledIfEEvPT_i";

std::string Path(const std::string &name) {
    return Folder() + "/" + name;
}

// Two threads, three streams on two devices, every kind of op and every outcome.
std::string Small() {
    std::string path = Path("small.cst");
    Maker m(path);
    m.Facts("{\"argv\": [\"a  b\"],\n \"pid\": 4000}");
    uint32_t main = m.Thread(4000, "main"), dog = m.Thread(4001);
    uint32_t s1 = m.Stream(), s2 = m.Stream(CST_STREAM_LEGACY);
    uint32_t s3 = m.Stream(CST_STREAM_CREATED, 2, 1, -1);
    uint32_t scaled = m.Kernel(kScaled), words = m.Kernel("words", CST_KIND_COOPERATIVE);
    uint32_t set = m.Memset("cuMemsetD32Async", 4), copy = m.Copy("cuMemcpyHtoDAsync_v2", 2);
    m.Op(1000, main, s1, scaled, {4, 5, 6, 32, 2, 1, 512}, CST_DEFERRED);
    m.Op(1200, main, s1, set, {1000, 0}, CST_DEFERRED, 200, 7);
    m.Launch(1250, main, s1, 2, 7, 60, CST_PATCHED);
    m.Op(1500, main, s1, words, {8, 1, 1, 64, 1, 1, 0}, CST_EAGER, 200);
    m.Op(1800, main, s1, scaled, {1, 1, 1, 32, 1, 1, 0}, CST_DEFERRED);
    m.Op(1950, main, s2, copy, {4096, 1}, CST_EAGER, 100);
    m.Call(2100, main, "cuStreamSynchronize", CST_CALL_FLUSH, s1, CST_SCOPE_T, 100);
    m.Flush(2110, main, s1, 1, "cuStreamSynchronize", "sync");
    m.Call(2150, main, "cuStreamSynchronize", CST_CALL_STEP_END, s1, CST_SCOPE_NONE, 300);
    m.Op(3000, main, s3, scaled, {2, 1, 1, 32, 1, 1, 0}, CST_DEFERRED);
    m.Segment(3490, dog, s3, 1, 8);
    m.Launch(3500, dog, s3, 1, 8, 50, CST_BUILT);
    m.Lost(3600, dog, 9, 5);
    m.Call(3700, main, "", CST_CALL_BREAK);
    m.Op(4000, main, s1, scaled, {3, 1, 1, 32, 1, 1, 0}, CST_DEFERRED);
    m.Close();
    return path;
}

void Export(const std::string &trace, const std::string &format, const std::string &to) {
    Result r = Cusplice({"export", "--force", format, to, trace});
    ASSERT_EQ(r.Exit(), 0) << r.err;
}

std::string Python(const Strings &arguments, const std::string &input = "") {
    Strings all = {"/usr/bin/env", "-u", "LD_PRELOAD", "python3"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    Result r = RunProgram(all, {}, input);
    return r.out + r.err;
}

// An expression of what perfetto.py found, d.
std::string Of(const std::string &found, const std::string &expression) {
    std::string out =
        Python({"-c", "import json,sys; d=json.load(sys.stdin); print(" + expression + ")"}, found);
    return out.empty() ? out : out.substr(0, out.size() - 1);
}

// A launch and a record of an event in a graph, then a record by itself.
std::string Recorded() {
    std::string path = Path("recorded.cst");
    Maker m(path);
    uint32_t main = m.Thread(4000), s1 = m.Stream(), scaled = m.Kernel(kScaled);
    uint32_t record = m.Record();
    m.Op(1000, main, s1, scaled, {4, 1, 1, 32, 1, 1, 0}, CST_DEFERRED);
    m.Op(1200, main, s1, record, {}, CST_DEFERRED, 100, 0x77);
    m.Launch(1300, main, s1, 2, 7);
    m.Op(2000, main, s1, record, {}, CST_EAGER, 200, 0x78);
    m.Close();
    return path;
}

// A launch on one stream, and a wait of another one for an event, in a graph.
std::string Waits() {
    std::string path = Path("waits.cst");
    Maker m(path);
    uint32_t main = m.Thread(4000), s1 = m.Stream(), s2 = m.Stream();
    uint32_t scaled = m.Kernel(kScaled), wait = m.Wait();
    m.Op(1000, main, s1, scaled, {4, 1, 1, 32, 1, 1, 0}, CST_DEFERRED);
    m.Op(1200, main, s2, wait, {}, CST_DEFERRED, 100, 0x77);
    m.Branch(1400, main, s2, 1);
    m.Launch(1400, main, s1, 2, 7);
    m.Close();
    return path;
}

// With GPU times: a graph of four, whose kernels overlap as programmatic launches do, and whose
// memset came to nothing; a copy that, by clocks that differ a little, ran before the trace began;
// an op of which nothing is known.
std::string Measured() {
    std::string path = Path("measured.cst");
    Maker m(path);
    uint32_t main = m.Thread(4000), s1 = m.Stream(), s2 = m.Stream();
    uint32_t words = m.Kernel("words"), set = m.Memset("cuMemsetD32Async", 4);
    uint32_t copy = m.Copy("cuMemcpyHtoDAsync_v2", 2);
    m.Op(10000, main, s2, copy, {4096, 0}, CST_EAGER, 10);
    m.Op(10100, main, s1, words, {8, 1, 1, 64, 1, 1, 0}, CST_DEFERRED);
    m.Op(10200, main, s1, set, {0, 0}, CST_DEFERRED);
    m.Op(10300, main, s1, words, {4, 1, 1, 64, 1, 1, 0}, CST_DEFERRED);
    m.Op(10400, main, s1, words, {2, 1, 1, 64, 1, 1, 0}, CST_DEFERRED);
    m.Launch(10500, main, s1, 4, 7);
    m.Op(10600, main, s1, words, {9, 1, 1, 64, 1, 1, 0}, CST_EAGER);
    m.Op(10800, main, s1, words, {1, 1, 1, 64, 1, 1, 0}, CST_DEFERRED);
    m.GpuStream(s1, 7);
    m.GpuStream(s2, 13);
    m.Gpu(9980, 300, 13, CST_GPU_MEMCPY);
    m.Gpu(12000, 700, 7, CST_GPU_KERNEL, "words", 8, 1);
    m.Gpu(12600, 500, 7, CST_GPU_KERNEL, "words", 4, 3);
    m.Gpu(12700, 100, 7, CST_GPU_KERNEL, "words", 2, 4);
    m.Gpu(14000, 50, 7, CST_GPU_KERNEL, "words", 9);
    m.Close();
    return path;
}

// ---- Perfetto ----

TEST(Perfetto, HoldsWhatTheTraceDoes) {
    std::string out = Path("small.json");
    Export(Small(), "--perfetto", out);
    std::string found = Python({"tests/export/perfetto.py", out});
    EXPECT_EQ(Of(found, "d['problems']"), "[]");
    EXPECT_EQ(Of(found, "d['base']"), "1000");
    EXPECT_EQ(Of(found, "d['gpu_times']"), "estimated: when it was issued");
    EXPECT_EQ(Of(found, "d['facts']"), "{'argv': ['a  b'], 'pid': 4000}");
    EXPECT_EQ(Of(found, "d['threads']"),
              "['stream 1 created, context 1', 'stream 2 legacy, context 1', "
              "'stream 3 created, context 2', 'thread 4000 main', 'thread 4001']");
    EXPECT_EQ(Of(found, "d['processes']"), "['GPU 0', 'GPU 1', 'program']");
    EXPECT_EQ(Of(found, "d['calls'], d['flows'], len(d['executions'])"), "7 6 6");
    EXPECT_EQ(Of(found, "d['eager']"),
              "{'3': ['rule', 'never_defer'], '5': ['rule', 'never_defer']}");
    EXPECT_EQ(Of(found, "sorted(d['counts'].items())"),
              "[('cuda_driver', 9), ('cusplice', 5), ('gpu_memcpy', 1), ('gpu_memset', 1), "
              "('instant flush', 1), ('instant lost records', 1), ('instant segment', 1), "
              "('kernel', 4)]");
    // number, category, name, device, stream, start, length, grid, block, bytes
    const char *const rows[] = {
        "[1, 'kernel', 'void app::scaled<float>(float*, int)', 0, 1, 250, 225, [4, 5, 6], "
        "[32, 2, 1], None]",
        "[2, 'gpu_memset', 'Memset', 0, 1, 475, 225, None, None, 4000]",
        "[3, 'kernel', 'words', 0, 1, 700, 410, [8, 1, 1], [64, 1, 1], None]",
        "[4, 'kernel', 'void app::scaled<float>(float*, int)', 0, 1, 1110, 1000, [1, 1, 1], "
        "[32, 1, 1], None]",
        "[5, 'gpu_memcpy', 'Memcpy HtoD', 0, 2, 1050, 1000, None, None, 4294971392]",
        "[6, 'kernel', 'void app::scaled<float>(float*, int)', 1, 3, 2500, 1000, [2, 1, 1], "
        "[32, 1, 1], None]",
    };
    for (unsigned i = 0; i < 6; i++)
        EXPECT_EQ(Of(found, "d['executions'][" + std::to_string(i) + "]"), rows[i]);
    EXPECT_EQ(Of(found, "d['graphs']"), "[{'segment': 7, 'ops': 2}, {'segment': 8, 'ops': 1}]");
}

TEST(Perfetto, TimesAreThoseThatWereMeasured) {
    std::string out = Path("measured.json");
    Export(Measured(), "--perfetto", out);
    std::string found = Python({"tests/export/perfetto.py", out});
    EXPECT_EQ(Of(found, "d['gpu_times']"), "measured by CUPTI");
    // Of the copy the flow is drawn to the beginning of the trace.
    EXPECT_EQ(Of(found, "d['problems']"), "[]");
    EXPECT_EQ(Of(found, "d['base']"), "10000");
    // number, start, length: one behind the other
    EXPECT_EQ(Of(found, "[[e[0], e[5], e[6]] for e in d['executions']]"),
              "[[1, 0, 280], [2, 2000, 700], [3, 2700, 0], [4, 2700, 400], [5, 3100, 0], "
              "[6, 4000, 50]]");
}

TEST(Perfetto, FlowsCanBeLeftOut) {
    std::string out = Path("flowless.json");
    ASSERT_EQ(Cusplice({"export", "--no-flows", "--perfetto=" + out, Small()}).Exit(), 0);
    std::string found = Python({"tests/export/perfetto.py", out});
    EXPECT_EQ(Of(found, "d['problems'], d['flows'], d['calls']"), "[] 0 7");
}

// Whatever the times in a file are: calls that overlap, LAUNCH records that are late, names that
// are no UTF-8, facts that are no JSON.
TEST(Perfetto, NestsWhateverTheTimesAre) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 6; round++) {
        std::string trace = Path("random.cst"), out = Path("random.json");
        Maker m(trace);
        m.Facts(round % 2 ? "{\"a\": tru}" : "{}");
        uint32_t threads[] = {m.Thread(10), m.Thread(0), m.Thread(12, kOdd)};
        uint32_t streams[] = {m.Stream(), m.Stream(CST_STREAM_PER_THREAD, 1, 3)};
        uint32_t kind = m.Kernel("odd \"name\" \xc3\x28");
        uint64_t base = round == 5 ? 0xfffffffffff00000 - 100000 : 5000000000, deferred[2] = {0, 0};
        for (int i = 0; i < 400; i++) {
            uint64_t ns = base + random() % 20000;
            uint32_t at = random() % 2, thread = threads[random() % 3], host = random() % 900;
            switch (random() % 5) {
            case 0:
                m.Call(ns, thread, "cuEventQuery", CST_CALL_FLUSH, CST_NONE, CST_SCOPE_T, host);
                break;
            case 1:
                m.Launch(ns, thread, streams[at], deferred[at] % 7, 1, host);
                break;
            case 2:
                m.Flush(ns, thread, streams[at], random() % 3, "x", "y");
                break;
            default:
                m.Op(ns, thread, streams[at], kind, {1, 1, 1, 1, 1, 1, 0},
                     random() % 2 ? CST_DEFERRED : CST_EAGER, host);
                deferred[at]++;
            }
        }
        m.Close();
        Export(trace, "--perfetto", out);
        std::string found = Python({"tests/export/perfetto.py", out});
        // A LAUNCH of a file like this may stand before its op.
        EXPECT_EQ(Of(found, "[p for p in d['problems'] if 'before its call' not in p]"), "[]");
        EXPECT_EQ(Of(found, "d['facts']"), round % 2 ? "{\"a\": tru}" : "{}");
    }
}

TEST(Perfetto, TimesThatNoDoubleHoldsAreRefused) {
    std::string trace = Path("wide.cst");
    Maker m(trace);
    uint32_t thread = m.Thread(1), stream = m.Stream(), kind = m.Kernel("k");
    m.Op(5, thread, stream, kind, {1, 1, 1, 1, 1, 1, 0}, CST_EAGER);
    m.Op(1ull << 60, thread, stream, kind, {1, 1, 1, 1, 1, 1, 0}, CST_EAGER);
    m.Close();
    Result r = Cusplice({"export", "--perfetto", Path("wide.json"), trace});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "104 days")) << r.err;
}

TEST(Perfetto, RecordsOfEventsAreNoCopies) {
    std::string out = Path("recorded.json");
    Export(Recorded(), "--perfetto", out);
    std::string found = Python({"tests/export/perfetto.py", out});
    EXPECT_EQ(Of(found, "d['problems']"), "[]");
    EXPECT_EQ(Of(found, "sorted(d['counts'].items())"),
              "[('cuda_driver', 3), ('cusplice', 2), ('gpu_record', 2), ('kernel', 1)]");
    EXPECT_EQ(Of(found, "d['executions'][1]"),
              "[2, 'gpu_record', 'Event record', 0, 1, 750, 450, None, None, None]");
    EXPECT_TRUE(Has(ReadFile(out), "\"event\":119,")) << ReadFile(out);
}

TEST(Exports, WaitsForEventsAreOps) {
    std::string out = Path("waits.json");
    Export(Waits(), "--perfetto", out);
    std::string found = Python({"tests/export/perfetto.py", out});
    EXPECT_EQ(Of(found, "d['problems']"), "[]");
    EXPECT_EQ(Of(found, "sorted(d['counts'].items())"),
              "[('cuda_driver', 2), ('cusplice', 3), ('gpu_wait', 1), ('kernel', 1)]");
    EXPECT_TRUE(Has(ReadFile(out), "\"event\":119,")) << ReadFile(out);
    out = Path("waits.sqlite");
    Export(Waits(), "--sqlite", out);
    EXPECT_EQ(Query(out, "SELECT streamId, correlationId, graphNodeId & 4294967295, event, number "
                         "FROM CUSPLICE_WAIT"),
              "2|2|2|119|0\n");
    out = Path("waits.jsonl");
    Export(Waits(), "--jsonl", out);
    found = Python({"-c",
                    "import json,sys\n"
                    "print(json.dumps([json.loads(l) for l in open(sys.argv[1])]))",
                    out});
    EXPECT_EQ(Of(found, "[(e['type'], e.get('stream'), e.get('kind'), e.get('event'), "
                        "e.get('place'), e.get('n')) for e in d[1:]]"),
              "[('op', 1, 'launch', None, 0, None), ('op', 2, 'wait', '0x77', 1, None), "
              "('branch', 2, None, None, None, 1), ('graph', 1, None, None, None, 2)]");
}

// ---- JSON lines ----

TEST(Jsonl, ARecordSaysWhichEvent) {
    std::string out = Path("recorded.jsonl");
    Export(Recorded(), "--jsonl", out);
    std::string found = Python({"-c",
                                "import json,sys\n"
                                "print(json.dumps([json.loads(l) for l in open(sys.argv[1])]))",
                                out});
    EXPECT_EQ(Of(found, "[(e['kind'], e['name'], e['outcome'], e.get('event'), e.get('bytes')) "
                        "for e in d if e['type'] == 'op']"),
              "[('launch', 'scaled', 'graph', None, None), "
              "('record', 'cuEventRecord', 'graph', '0x77', None), "
              "('record', 'cuEventRecord', 'eager', '0x78', None)]");
}

TEST(Jsonl, HasAnObjectForEachEvent) {
    std::string out = Path("small.jsonl");
    Export(Small(), "--jsonl", out);
    std::string found = Python({"-c",
                                "import json,sys\n"
                                "print(json.dumps([json.loads(l) for l in open(sys.argv[1])]))",
                                out});
    EXPECT_EQ(Of(found, "d[0]['type'], d[0]['begin_ns'], d[0]['ops'], d[0]['closed'], "
                        "d[0]['lost_ops'], d[0]['facts']['argv']"),
              "header 1000 7 True 5 ['a  b']");
    EXPECT_EQ(Of(found, "[(t['id'], t['tid'], t['name']) for t in d[0]['threads']]"),
              "[(1, 4000, 'main'), (2, 4001, '')]");
    EXPECT_EQ(Of(found, "[(s['id'], s['context'], s['device'], s['kind'], s['priority']) for s in "
                        "d[0]['streams']]"),
              "[(1, 1, 0, 'created', 0), (2, 1, 0, 'legacy', 0), (3, 2, 1, 'created', -1)]");
    EXPECT_EQ(Of(found, "[e['type'] for e in d[1:]]"),
              "['op', 'op', 'graph', 'op', 'op', 'op', 'call', 'flush', 'call', 'op', 'segment', "
              "'graph', 'lost', 'call', 'op']");
    EXPECT_EQ(Of(found,
                 "[(e['ns'], e['kind'], e['name'], e['outcome'], e['step'], e.get('segment'), "
                 "e.get('place'), e.get('bytes')) for e in d if e['type'] == 'op']"),
              "[(0, 'launch', 'scaled', 'graph', 0, 7, 0, None), "
              "(200, 'memset', 'cuMemsetD32Async', 'graph', 0, 7, 1, None), "
              "(500, 'launch', 'words', 'eager', 0, None, None, None), "
              "(800, 'launch', 'scaled', 'flushed', 0, None, None, None), "
              "(950, 'copy', 'cuMemcpyHtoDAsync_v2', 'eager', 0, None, None, 4294971392), "
              "(2000, 'launch', 'scaled', 'graph', 0, 8, 0, None), "
              "(3000, 'launch', 'scaled', 'open', 1, None, None, None)]");
    EXPECT_EQ(Of(found, "d[1]['grid'], d[1]['block'], d[1]['shared'], d[2]['elements']"),
              "[4, 5, 6] [32, 2, 1] 512 1000");
    EXPECT_EQ(Of(found, "[e for e in d if e['type'] == 'flush']"),
              "[{'type': 'flush', 'ns': 1110, 'thread': 1, 'stream': 1, 'n': 1, 'cause': "
              "'cuStreamSynchronize', 'reason': 'sync'}]");
    EXPECT_EQ(Of(found, "[e['out_ns'] for e in d if e.get('outcome') == 'flushed']"), "[1110]");
    EXPECT_EQ(Of(found, "[(e['name'], e['what'], e.get('scope'), e.get('stream')) for e in d "
                        "if e['type'] == 'call']"),
              "[('cuStreamSynchronize', 'flush', 'thread', 1), ('cuStreamSynchronize', "
              "'step_end', None, 1), ('', 'break', None, None)]");
    // To standard output, the same.
    Result r = Cusplice({"export", "--jsonl", "-", Small()});
    EXPECT_EQ(r.out, ReadFile(out));
}

TEST(Jsonl, IsWhatDumpPrints) {
    for (const std::string &trace : {Small(), std::string("tests/golden/trace-v1.cst")}) {
        std::string out = Path("same.jsonl");
        EXPECT_EQ(Cusplice({"export", "--force", "--jsonl", out, trace}).Exit(), 0);
        Result dump = Cusplice({"dump", trace});
        EXPECT_EQ(dump.Exit(), 0) << dump.err;
        EXPECT_EQ(ReadFile(out), dump.out);
        EXPECT_GT(dump.out.size(), 2000u);
    }
}

// ---- SQLite ----

TEST(Sqlite, NamesAndTypesAreThoseOfNsys) {
    std::string out = Path("small.sqlite");
    Export(Small(), "--sqlite", out);
    const std::pair<const char *, const char *> tables[] = {
        {"StringIds", "id,value"},
        {"META_DATA_EXPORT", "name,value"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME",
         "start,end,eventClass,globalTid,correlationId,nameId,returnValue,callchainId"},
        {"CUPTI_ACTIVITY_KIND_KERNEL",
         "start,end,deviceId,contextId,greenContextId,streamId,correlationId,globalPid,"
         "demangledName,shortName,mangledName,launchType,cacheConfig,registersPerThread,gridX,"
         "gridY,gridZ,blockX,blockY,blockZ,staticSharedMemory,dynamicSharedMemory,"
         "localMemoryPerThread,localMemoryTotal,gridId,sharedMemoryExecuted,graphNodeId,"
         "sharedMemoryLimitConfig,graphId,clusterX,clusterY,clusterZ"},
        {"CUPTI_ACTIVITY_KIND_MEMCPY",
         "start,end,deviceId,contextId,greenContextId,streamId,correlationId,globalPid,bytes,"
         "copyKind,srcKind,dstKind,graphNodeId"},
        {"CUPTI_ACTIVITY_KIND_MEMSET",
         "start,end,deviceId,contextId,greenContextId,streamId,correlationId,globalPid,value,bytes,"
         "graphNodeId,memKind"},
        {"TARGET_INFO_CUDA_STREAM", "streamId,hwId,vmId,processId,contextId,priority,flag"},
        {"ENUM_CUDA_MEMCPY_OPER", "id,name,label"},
    };
    for (const auto &[table, columns] : tables)
        EXPECT_EQ(Query(out, "SELECT group_concat(name) FROM pragma_table_info('" +
                                 std::string(table) + "')"),
                  std::string(columns) + "\n");
    EXPECT_EQ(
        Query(out, "SELECT DISTINCT type FROM pragma_table_info('CUPTI_ACTIVITY_KIND_KERNEL')"),
        "INTEGER\n");
    EXPECT_EQ(Query(out, "PRAGMA integrity_check"), "ok\n");
    EXPECT_EQ(Query(out, "SELECT value FROM META_DATA_EXPORT WHERE name='EXPORT_PRODUCT_NAME'"),
              "cusplice\n");
}

TEST(Sqlite, HoldsWhatTheTraceDoes) {
    std::string out = Path("small.sqlite");
    Export(Small(), "--sqlite", out);
    EXPECT_EQ(Query(out, "SELECT k.start, k.end, deviceId, contextId, streamId, k.correlationId, "
                         "globalPid >> 24, d.value, s.value, m.value, launchType, gridX, gridY, "
                         "gridZ, blockX, blockY, blockZ, dynamicSharedMemory, graphId, "
                         "graphNodeId & 4294967295 FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN "
                         "StringIds d ON d.id = demangledName JOIN StringIds s ON s.id = shortName "
                         "JOIN StringIds m ON m.id = mangledName ORDER BY k.correlationId"),
              "250|475|0|1|1|1|4000|void app::scaled<float>(float*, int)|scaled|"
              "_ZN3app6scaledIfEEvPT_i|1|4|5|6|32|2|1|512|7|1\n"
              "700|1110|0|1|1|3|4000|words|words|words|2|8|1|1|64|1|1|0|NULL|NULL\n"
              "1110|2110|0|1|1|4|4000|void app::scaled<float>(float*, int)|scaled|"
              "_ZN3app6scaledIfEEvPT_i|1|1|1|1|32|1|1|0|NULL|NULL\n"
              "2500|3500|1|2|3|6|4000|void app::scaled<float>(float*, int)|scaled|"
              "_ZN3app6scaledIfEEvPT_i|1|2|1|1|32|1|1|0|8|1\n");
    EXPECT_EQ(Query(out, "SELECT start, end, streamId, correlationId, value, bytes, graphNodeId & "
                         "4294967295 FROM CUPTI_ACTIVITY_KIND_MEMSET"),
              "475|700|1|2|7|4000|2\n");
    EXPECT_EQ(Query(out,
                    "SELECT start, streamId, correlationId, bytes, label FROM "
                    "CUPTI_ACTIVITY_KIND_MEMCPY JOIN ENUM_CUDA_MEMCPY_OPER e ON e.id = copyKind"),
              "1050|2|5|4294971392|Host-to-Device\n");
    // Two records of one wait are one row.
    EXPECT_EQ(Query(out,
                    "SELECT start, end, eventClass, globalTid % 16777216, correlationId, value "
                    "FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds s ON s.id = nameId ORDER "
                    "BY correlationId"),
              "0|100|1|4000|1|cuLaunchKernel\n"
              "200|400|1|4000|2|cuMemsetD32Async\n"
              "500|700|1|4000|3|cuLaunchCooperativeKernel\n"
              "800|900|1|4000|4|cuLaunchKernel\n"
              "950|1050|1|4000|5|cuMemcpyHtoDAsync_v2\n"
              "2000|2100|1|4000|6|cuLaunchKernel\n"
              "3000|3100|1|4000|7|cuLaunchKernel\n"
              "1100|1450|1|4000|8|cuStreamSynchronize\n");
    EXPECT_EQ(Query(out,
                    "SELECT correlationId, outcome, launchId, flushId, place, stepId, value FROM "
                    "CUSPLICE_OP LEFT JOIN StringIds ON id = eagerId"),
              "1|graph|1|NULL|0|1|NULL\n2|graph|1|NULL|1|1|NULL\n3|eager|NULL|NULL|NULL|1|rule\n"
              "4|flushed|NULL|2|0|1|NULL\n5|eager|NULL|NULL|NULL|2|rule\n"
              "6|graph|3|NULL|0|3|NULL\n7|open|NULL|NULL|NULL|4|NULL\n");
    EXPECT_EQ(Query(out, "SELECT launchId, start, end, streamId, segmentId, choice, ops, patched, "
                         "buildNs FROM CUSPLICE_LAUNCH"),
              "1|250|310|1|7|patched|2|2|0\n3|2500|2550|3|8|built|1|0|5000\n");
    EXPECT_EQ(Query(out, "SELECT flushId, start, ops, c.value, r.value FROM CUSPLICE_FLUSH JOIN "
                         "StringIds c ON c.id = causeId JOIN StringIds r ON r.id = reasonId"),
              "2|1110|1|cuStreamSynchronize|sync\n");
    EXPECT_EQ(Query(out,
                    "SELECT start, end, s.value, streamId, what, scope FROM CUSPLICE_CALL LEFT "
                    "JOIN StringIds s ON id = nameId"),
              "1100|1200|cuStreamSynchronize|1|flush|T\n1150|1450|cuStreamSynchronize|1|step_end|"
              "none\n2700|2750|NULL|NULL|break|none\n");
    EXPECT_EQ(Query(out, "SELECT streamId, number, start, end, ops, inGraphs, graphs FROM "
                         "CUSPLICE_STEP"),
              "1|0|0|1450|4|2|1\n2|0|950|1050|1|0|0\n3|0|2000|2100|1|1|1\n1|1|3000|3100|1|0|0\n");
    EXPECT_EQ(Query(out, "SELECT value FROM CUSPLICE_FACTS WHERE name IN ('base_ns', 'gpu_times', "
                         "'lost_ops') ORDER BY name"),
              "1000\nestimated: when it was issued\n5\n");
    EXPECT_EQ(Query(out, "SELECT streamId, flag FROM TARGET_INFO_CUDA_STREAM"), "1|2\n2|3\n3|2\n");
}

TEST(Sqlite, RecordsOfEventsHaveATableOfTheirOwn) {
    std::string out = Path("recorded.sqlite");
    Export(Recorded(), "--sqlite", out);
    EXPECT_EQ(Query(out, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY"), "0\n");
    EXPECT_EQ(Query(out, "SELECT streamId, correlationId, graphNodeId & 4294967295, event, number "
                         "FROM CUSPLICE_RECORD"),
              "1|2|2|119|1\n1|3|NULL|120|1\n");
    EXPECT_EQ(Query(out, "SELECT correlationId, op, outcome, elements FROM CUSPLICE_OP JOIN "
                         "CUSPLICE_KIND USING (kindId) WHERE op = 'record'"),
              "2|record|graph|NULL\n3|record|eager|NULL\n");
    EXPECT_EQ(Query(out, "SELECT value FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id "
                         "= nameId WHERE correlationId = 2"),
              "cuEventRecord\n");
}

TEST(Sqlite, TimesAreThoseThatWereMeasured) {
    std::string out = Path("measured.sqlite");
    Export(Measured(), "--sqlite", out);
    EXPECT_EQ(Query(out, "SELECT value FROM CUSPLICE_FACTS WHERE name = 'gpu_times'"),
              "measured by CUPTI\n");
    EXPECT_EQ(Query(out, "SELECT correlationId, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL "
                         "ORDER BY correlationId"),
              "2|2000|2700\n4|2700|3100\n5|3100|3100\n6|4000|4050\n");
    EXPECT_EQ(Query(out, "SELECT correlationId, start, end FROM CUPTI_ACTIVITY_KIND_MEMSET"),
              "3|2700|2700\n");
    EXPECT_EQ(Query(out, "SELECT correlationId, start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY"),
              "1|0|280\n");
}

// The end of a wait is no call of its own.
TEST(Exports, AWaitIsOneCall) {
    std::string trace = Path("waits.cst");
    Maker m(trace);
    uint32_t thread = m.Thread(1), stream = m.Stream(), kind = m.Kernel("k");
    m.Op(5, thread, stream, kind, {1, 1, 1, 1, 1, 1, 0}, CST_EAGER);
    m.Call(100, thread, "cuStreamSynchronize", CST_CALL_FLUSH, stream, CST_SCOPE_T, 10);
    m.Call(150, thread, "cuStreamSynchronize", CST_CALL_WAITED, stream, CST_SCOPE_NONE, 1);
    m.Close();
    std::string out = Path("waits.sqlite");
    Export(trace, "--sqlite", out);
    EXPECT_EQ(Query(out, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON "
                         "nameId = id WHERE value = 'cuStreamSynchronize'"),
              "1\n");
    EXPECT_EQ(Query(out, "SELECT what FROM CUSPLICE_CALL ORDER BY start"), "flush\nwaited\n");
    out = Path("waits.json");
    Export(trace, "--perfetto", out);
    std::string text = ReadFile(out);
    size_t n = 0;
    for (size_t at = text.find("\"name\":\"cuStreamSynchronize\""); at != std::string::npos;
         at = text.find("\"name\":\"cuStreamSynchronize\"", at + 1))
        n++;
    EXPECT_EQ(n, 1u);
    EXPECT_TRUE(Has(text, "\"name\":\"waited\""));
}

// ---- what is refused ----

TEST(ExportVerb, WhatIsThereIsNotReplacedUnasked) {
    std::string trace = Small();
    for (const char *format : {"--perfetto", "--jsonl", "--sqlite"}) {
        std::string out = Write("mine", "mine");
        Result r = Cusplice({"export", format, out, trace});
        EXPECT_EQ(r.Exit(), 1);
        EXPECT_TRUE(Has(r.err, out + ": cannot be written: it is there already (--force")) << r.err;
        EXPECT_EQ(ReadFile(out), "mine");
        EXPECT_EQ(Cusplice({"export", format, out, trace, "--force"}).Exit(), 0);
        EXPECT_NE(ReadFile(out), "mine");
        EXPECT_EQ(Cusplice({"export", format, Folder() + "/none/out", trace}).Exit(), 1);
    }
    EXPECT_EQ(FilesWith(".partial"), Strings{});
}

TEST(ExportVerb, AFullDiskLeavesNothing) {
    std::string trace = Path("long.cst");
    Maker m(trace);
    uint32_t thread = m.Thread(1), stream = m.Stream(), kind = m.Kernel("k");
    for (uint64_t i = 0; i < 20000; i++)
        m.Op(i * 100, thread, stream, kind, {1, 1, 1, 1, 1, 1, 0}, CST_EAGER);
    m.Close();
    for (const char *format : {"--perfetto", "--jsonl", "--sqlite"}) {
        std::string out = Path("full");
        Result r = RunProgram({"/bin/sh", "-c", "ulimit -f 200; exec \"$@\"", "sh",
                               CuspliceProgram(), "export", format, out, trace});
        EXPECT_EQ(r.Exit(), 1) << format;
        EXPECT_TRUE(Has(r.err, out + ": cannot be written: File too large")) << r.err;
        EXPECT_NE(access(out.c_str(), F_OK), 0) << format;
    }
    EXPECT_EQ(FilesWith(".partial"), Strings{});
    Result r = Cusplice({"export", "--jsonl", "-", trace}); // as long as it is
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_GT(r.out.size(), 1000000u);
}

TEST(ExportVerb, ATornTraceIsExportedAsFarAsItGoes) {
    std::string whole = ReadFile(Small()), trace = Path("torn.cst");
    Write("torn.cst", whole.substr(0, whole.size() - 20));
    Result r = Cusplice({"export", "--jsonl", "-", trace});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "\"closed\": false")) << r.out.substr(0, 300);
    EXPECT_TRUE(Has(r.err, "are torn and left out")) << r.err;
    Write("torn.cst", whole.substr(0, 10));
    r = Cusplice({"export", "--jsonl", "-", trace});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "torn.cst: not a trace of cusplice")) << r.err;
}

TEST(ExportVerb, WrongUsageIsTold) {
    const std::pair<Strings, const char *> cases[] = {
        {{"--perfeto", "x", "t"}, "the nearest is --perfetto"},
        {{"t"}, "a format is missing"},
        {{"--jsonl", "x"}, "a trace is missing"},
        {{"--jsonl"}, "--jsonl: the name of a file is missing"},
        {{"--jsonl", "x", "--jsonl=y", "t"}, "--jsonl: given twice"},
        {{"--jsonl", "x", "t", "u"}, "u: one trace at a time"},
    };
    for (const auto &[arguments, text] : cases) {
        Strings all = {"export"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        Result r = Cusplice(all);
        EXPECT_EQ(r.Exit(), 2) << text;
        EXPECT_TRUE(Has(r.err, text)) << r.err;
    }
    Result r = Cusplice({"export", "--sqlite", "-", Small()});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "a database needs a file")) << r.err;
}

} // namespace
