// Promise: cusplice import reads databases of cusplice export, and databases of nsys in the forms
// of several years.
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "tests/export/make.h"
#include "tests/export/query.h"
#include "tests/launcher/launcher.h"
#include "tests/unit/trace/opened.h"
#include "tools/trace/export.h"

namespace {

std::string Path(const std::string &name) {
    return Folder() + "/" + name;
}

std::string Number(uint64_t number) {
    return std::to_string(number);
}

// Ops as text, a line each.
std::string Ops(const cst_trace *trace, bool with_thread = true) {
    std::string out;
    for (size_t i = 0; i < trace->n_events; i++) {
        if (trace->events[i]->type != CST_OP)
            continue;
        auto *op = reinterpret_cast<const cst_op *>(trace->events[i]);
        const cst_kind *kind = trace->kinds[op->kind];
        const cst_stream *stream = trace->streams[op->stream];
        out += Number(op->head.ns) + "+" + Number(op->host_ns);
        if (with_thread)
            out += " t" + Number(trace->threads[op->head.thread]->tid);
        out += std::string(" ") + export_stream(stream->kind) + " " + Number(stream->device) + "/" +
               Number(stream->context) + "/" + Number(op->stream) + " " + model_op_words[kind->op] +
               " " + cst_string(trace, kind->name) + " e" + Number(kind->elem) + " f" +
               Number(kind->form) + (kind->flags & CST_KIND_COOPERATIVE ? " coop" : "") +
               (kind->flags & CST_KIND_NO_NODE ? " no_node" : "");
        for (uint32_t dim : op->dims)
            out += " " + Number(dim);
        uint64_t event, number;
        if (model_event(trace, op, &event, &number))
            out += " event " + Number(event) + " " + Number(number);
        out += "\n";
    }
    return out;
}

std::string Calls(const cst_trace *trace) {
    std::string out;
    for (size_t i = 0; i < trace->n_events; i++) {
        if (trace->events[i]->type != CST_CALL)
            continue;
        auto *call = reinterpret_cast<const cst_call *>(trace->events[i]);
        out += Number(call->head.ns) + "+" + Number(call->host_ns) + " " +
               cst_string(trace, call->name) + " " + export_what(call->what) + " " +
               export_scope(call->scope) + " " +
               (call->stream == CST_NONE ? "-" : Number(call->stream)) + "\n";
    }
    return out;
}

Result Import(const std::string &from, const std::string &to, Strings more = {}) {
    more.insert(more.begin(), {"import", "--force", "-o", to, from});
    return Cusplice(more);
}

TEST(Import, OfAnExportGivesTheSameOpsInTheSameOrder) {
    std::mt19937_64 random(2);
    std::string trace = Path("a.cst"), database = Path("a.sqlite"), back = Path("b.cst");
    Maker m(trace);
    uint32_t threads[] = {m.Thread(500, "x"), m.Thread(501)};
    uint32_t streams[] = {m.Stream(), m.Stream(CST_STREAM_LEGACY),
                          m.Stream(CST_STREAM_PER_THREAD, 1, 0),
                          m.Stream(CST_STREAM_CREATED, 2, 1)};
    uint32_t kinds[] = {m.Kernel("_Z1aPf"),
                        m.Kernel("_Z1bPf", CST_KIND_COOPERATIVE),
                        m.Memset("cuMemsetD8Async", 1),
                        m.Memset("cuMemsetD32Async", 4),
                        m.Copy("cuMemcpyAsync", 0),
                        m.Copy("cuMemcpyHtoDAsync_v2", 2),
                        m.Copy("cuMemcpyDtoHAsync_v2", 3),
                        m.Copy("cuMemcpyDtoDAsync_v2", 1),
                        m.Record(),
                        m.Wait()};
    uint64_t ns = 777000000000;
    uint32_t deferred = 0;
    for (int i = 0; i < 500; i++, ns += random() % 3 * 50) { // many at one time
        uint32_t thread = threads[i / 250], kind = kinds[random() % 10];
        uint32_t stream = random() % 3 ? streams[0] : streams[random() % 4];
        Maker::Dims dims = {
            uint32_t(random() % 999 + 1), uint32_t(random() % 3 + 1), 1, 32, 1, 1, 0};
        if (kind >= 9)
            dims = {};
        else if (kind > 2) // memsets, copies
            dims = {uint32_t(random()), uint32_t(random() % 3)};
        bool wait = stream == streams[0] && random() % 4;
        m.Op(ns, thread, stream, kind, dims, wait ? CST_DEFERRED : CST_EAGER, random() % 200,
             kind >= 9 ? random() % 5 + 1 : 0);
        deferred += wait;
        if (deferred == 20 || (!wait && stream == streams[0]) || i == 499) {
            m.Launch(ns + 10, thread, streams[0], deferred, 1);
            deferred = 0;
        }
        if (i % 50 == 49) {
            ns += 1000;
            m.Call(ns, thread, "cuStreamSynchronize", CST_CALL_FLUSH, streams[0], CST_SCOPE_T);
            m.Call(ns + 10, thread, "cuStreamSynchronize", CST_CALL_STEP_END, streams[0]);
            m.Call(ns + 20, thread, "cuStreamSynchronize", CST_CALL_WAITED, streams[0]);
            m.Call(ns + 30, thread, "cuEventQuery", CST_CALL_EVENT_SEEN);
            m.Call(ns + 40, thread, "", CST_CALL_BREAK);
            ns += 1000;
        }
    }
    m.Close();
    ASSERT_EQ(Cusplice({"export", "--sqlite", database, trace}).Exit(), 0);
    Result r = Import(database, back);
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, "500 ops, 50 calls")) << r.err;
    Trace before = OpenGood(trace), after = OpenGood(back);
    EXPECT_EQ(Ops(before.get()), Ops(after.get()));
    EXPECT_EQ(Calls(before.get()), Calls(after.get()));
    EXPECT_TRUE(after->closed);
    EXPECT_EQ(after->n_gpu, 0u) << "the export's times on the GPU were estimated";
    EXPECT_TRUE(Has(after->facts, "\"imported\":true")) << after->facts;
    EXPECT_TRUE(Has(after->facts, "\"exporter\":\"cusplice\"")) << after->facts;
    for (uint32_t i = 1; i < after->n_kinds; i++)
        EXPECT_EQ(after->kinds[i]->flags & CST_KIND_OPAQUE,
                  after->kinds[i]->op == CST_OP_RECORD || after->kinds[i]->op == CST_OP_WAIT
                      ? 0u
                      : uint32_t{CST_KIND_OPAQUE});
}

const char kStrings[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'void k<float>(float*)'), (2,'k'), (3,'_Z1kIfEvPT_'), "
    "(4,'other()'), (5,'other'), (6,'_Z5otherv'), (10,'cudaLaunchKernel_v7000'), "
    "(11,'cudaStreamSynchronize_v3020'), (12,'cudaMemcpyAsync_v3020'), (13,'cudaMemcpy_v3020'), "
    "(14,'cudaGetLastError_v3020'), (15,'cudaFree_v3020'), (16,'cudaWonder_v14000'), "
    "(17,'cudaGraphLaunch_v10000'), (18,'cudaMemsetAsync_v3020'), (19,'cudaEventQuery_v3020'), "
    "(20,'cuMemcpyDtoHAsync_v2'), (21,'cudaFuncGetAttributes_v3020');";

// The least that an old one has: no process, no mangled names, no graphs, no times of calls.
TEST(Import, OldDatabasesAreRead) {
    std::string database = Path("old.sqlite"), out = Path("old.cst");
    Database(database,
             std::string(kStrings) +
                 "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, streamId INT, "
                 "demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, "
                 "blockY INT, blockZ INT);"
                 "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300,350,7,1,2,9,1,1,64,1,1),"
                 "(100,150,7,1,2,8,1,1,64,1,1),(200,250,13,4,5,7,1,1,32,1,1),"
                 "(400,450,13,4,2,7,1,1,32,1,1);");
    Result r = Cusplice({"import", database}); // the name follows from that of the database
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Trace trace = OpenGood(out);
    EXPECT_EQ(Ops(trace.get(), false), "100+0 legacy 0/0/1 launch k e0 f0 8 1 1 64 1 1 0\n"
                                       "200+0 created 0/0/2 launch other e0 f0 7 1 1 32 1 1 0\n"
                                       "300+0 legacy 0/0/1 launch k e0 f0 9 1 1 64 1 1 0\n"
                                       "400+0 created 0/0/2 launch k e0 f0 7 1 1 32 1 1 0\n");
    EXPECT_TRUE(Has(trace->facts, "\"names\":\"short\"")) << trace->facts;
    EXPECT_TRUE(Has(trace->facts, "\"stream_kinds\":\"assumed\"")) << trace->facts;
    // Two kernels of one short name are two kinds.
    EXPECT_EQ(trace->n_kinds, 4u);
}

std::string New() {
    return std::string(kStrings) +
           "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
           "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_NAME','NVIDIA Nsight Systems'),"
           "('EXPORT_SCHEMA_VERSION','3.24.14');"
           "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);"
           "INSERT INTO TARGET_INFO_GPU VALUES (0,'NVIDIA H200');"
           "CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INT, hwId INT, vmId INT, "
           "processId INT, deviceId INT, contextId INT);"
           "INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (9,0,0,77,0,1);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId "
           "INT, greenContextId INT, streamId INT, correlationId INT, globalPid INT, demangledName "
           "INT, shortName INT, mangledName INT, launchType INT, gridX INT, gridY INT, gridZ INT, "
           "blockX INT, blockY INT, blockZ INT, dynamicSharedMemory INT, graphNodeId INT, graphId "
           "INT, clusterX INT, clusterY INT, clusterZ INT);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
           "(900,950,0,1,NULL,9,1,77<<24,1,2,3,1,4,1,1,64,1,1,16,NULL,NULL,0,0,0),"
           "(910,990,0,1,NULL,14,2,77<<24,4,5,6,2,5,1,1,32,1,1,0,NULL,NULL,2,1,1),"
           "(2100,2200,0,1,NULL,14,20,77<<24,1,2,3,1,6,1,1,32,1,1,0,4294967297,1,0,0,0),"
           "(2200,2300,0,1,NULL,14,20,77<<24,4,5,6,1,6,1,1,32,1,1,0,4294967298,1,0,0,0);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId "
           "INT, streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind "
           "INT, dstKind INT, graphNodeId INT);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES "
           "(1000,1100,0,1,9,3,77<<24,5000000000,1,1,2,NULL),(1100,1200,0,1,9,4,77<<24,64,1,0,2,"
           "NULL),(1200,1300,0,1,9,5,77<<24,64,2,2,0,NULL),(1350,1400,0,1,9,6,77<<24,32,2,2,1,"
           "NULL);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, contextId "
           "INT, streamId INT, correlationId INT, globalPid INT, value INT, bytes INT);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1400,1410,0,1,14,7,77<<24,0,256);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, "
           "globalTid "
           "INT, correlationId INT, nameId INT, returnValue INT, callchainId INT);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES "
           "(100,110,0,(77<<24)|80,1,10,0,NULL),(610,700,67,(77<<24)|80,9,11,0,1),"
           "(120,140,0,(77<<24)|80,2,10,0,NULL),(200,210,0,(77<<24)|80,3,12,0,NULL),"
           "(220,230,0,(77<<24)|80,4,12,0,NULL),(300,400,0,(77<<24)|80,5,13,0,NULL),"
           "(500,510,1,(77<<24)|81,6,20,0,NULL),(520,530,0,(77<<24)|80,7,18,0,NULL),"
           "(600,601,0,(77<<24)|80,8,14,0,NULL),(610,700,0,(77<<24)|80,9,11,0,NULL),"
           "(710,720,0,(77<<24)|80,10,15,0,NULL),(730,731,0,(77<<24)|80,11,16,0,NULL),"
           "(740,741,0,(77<<24)|80,12,19,600,NULL),(742,743,0,(77<<24)|80,13,19,0,NULL),"
           "(750,751,0,(77<<24)|80,14,21,0,NULL),(752,753,0,(77<<24)|80,15,21,0,NULL),"
           "(800,850,0,(77<<24)|80,20,17,0,NULL);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, contextId INT, "
           "streamId INT, correlationId INT, globalPid INT);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (610,700,1,9,9,77<<24);";
}

TEST(Import, NewDatabasesAreRead) {
    std::string database = Path("new.sqlite"), out = Path("new.cst");
    Database(database, New());
    Result r = Import(database, out);
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Trace trace = OpenGood(out);
    // The synchronous copy is no op; copies of pageable memory can be no node.
    EXPECT_EQ(Ops(trace.get()),
              "100+10 t80 legacy 0/1/1 launch _Z1kIfEvPT_ e0 f0 4 1 1 64 1 1 16\n"
              "120+20 t80 created 0/1/2 launch _Z5otherv e0 f0 coop 5 1 1 32 1 1 0\n"
              "200+10 t80 legacy 0/1/1 copy cuMemcpyHtoDAsync_v2 e0 f2 705032704 1 0 0 0 0 0\n"
              "220+10 t80 legacy 0/1/1 copy cuMemcpyHtoDAsync_v2 e0 f2 no_node 64 0 0 0 0 0 0\n"
              "500+10 t81 legacy 0/1/1 copy cuMemcpyDtoHAsync_v2 e0 f3 32 0 0 0 0 0 0\n"
              "520+10 t80 created 0/1/2 memset cuMemsetD8Async e1 f0 256 0 0 0 0 0 0\n");
    EXPECT_EQ(Calls(trace.get()), "300+0 cudaMemcpy_v3020 flush T 1\n"
                                  "300+100 cudaMemcpy_v3020 step_end none 1\n"
                                  "610+0 cudaStreamSynchronize_v3020 flush T 1\n"
                                  "610+90 cudaStreamSynchronize_v3020 step_end none 1\n"
                                  "710+10 cudaFree_v3020 flush P 2\n"
                                  "710+0 cudaFree_v3020 memory_gone none 2\n"
                                  "730+1 cudaWonder_v14000 flush P 2\n"
                                  "740+0 cudaEventQuery_v3020 flush T 2\n"
                                  "750+1 cudaFuncGetAttributes_v3020 flush P 2\n"
                                  "800+50 cudaGraphLaunch_v10000 flush T 2\n");
    EXPECT_TRUE(Has(r.err, "2 ops in graphs of the program are left out")) << r.err;
    EXPECT_TRUE(Has(r.err, "1 calls are in no table")) << r.err;
    EXPECT_TRUE(Has(r.err, "first cudaWonder_v14000")) << r.err;
    for (const char *fact : {"\"gpu\":\"NVIDIA H200\"", "\"schema\":\"3.24.14\"",
                             "\"names\":\"mangled\"", "\"stream_kinds\":\"known\"", "\"pid\":77",
                             "\"ops_in_calls\":1", "\"ops_in_graphs_left_out\":2", "new.sqlite"})
        EXPECT_TRUE(Has(trace->facts, fact)) << fact << " in " << trace->facts;
    EXPECT_EQ(trace->kinds[2]->cluster[0], 2u);
}

// On the stream that the thread worked on last. Behind a wait the events are the same again.
TEST(Import, RecordsOfEventsAreOps) {
    std::string database = Path("events.sqlite"), out = Path("events.cst");
    const std::string calls = "INSERT INTO StringIds VALUES (30,'cudaEventRecord_v3020'),"
                              "(31,'cuEventRecordWithFlags_ptsz');"
                              "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES "
                              "(90,95,0,(77<<24)|80,40,30,0,NULL),"
                              "(150,155,0,(77<<24)|80,41,30,0,NULL),"
                              "(160,165,1,(77<<24)|80,42,31,0,NULL),"
                              "(535,540,0,(77<<24)|80,43,30,400,NULL),"
                              "(702,709,0,(77<<24)|80,44,30,0,NULL);";
    Database(database, New() + calls);
    Result r = Import(database, out);
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Trace trace = OpenGood(out);
    std::string event = std::to_string(uint64_t{1} << 32 | 1), record = " record cuEventRecord e0 ";
    std::string second = std::to_string(uint64_t{1} << 32 | 2);
    std::string ops = Ops(trace.get());
    for (const std::string &line :
         {"150+5 t80 created 0/1/2" + record + "f0 0 0 0 0 0 0 0 event " + event + " 0\n",
          "160+5 t80 created 0/1/2" + record + "f0 0 0 0 0 0 0 0 event " + second + " 0\n",
          "535+5 t80 created 0/1/2" + record + "f0 0 0 0 0 0 0 0 event " + event + " 0\n",
          "702+7 t80 created 0/1/2" + record + "f0 0 0 0 0 0 0 0 event " + event + " 0\n"})
        EXPECT_TRUE(Has(ops, line)) << line << ops;
    EXPECT_TRUE(Has(Calls(trace.get()), "90+5 cudaEventRecord_v3020 flush T -\n"))
        << "nobody knows on which stream" << Calls(trace.get());
    EXPECT_EQ(Count(Calls(trace.get()), "EventRecord"), 1u) << Calls(trace.get());
    // With a table of events there is no doubt.
    Database(database, New() + calls +
                           "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INT, contextId "
                           "INT, streamId INT, correlationId INT, globalPid INT, eventId INT);"
                           "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES "
                           "(0,1,9,41,77<<24,8),(0,1,14,44,77<<24,8);");
    ASSERT_EQ(Import(database, out).Exit(), 0);
    ops = Ops(OpenGood(out).get());
    for (const std::string &line :
         {"150+5 t80 legacy 0/1/1" + record + "f0 0 0 0 0 0 0 0 event 8 0\n",
          "702+7 t80 created 0/1/2" + record + "f0 0 0 0 0 0 0 0 event 8 0\n"})
        EXPECT_TRUE(Has(ops, line)) << line << ops;
    Result whatif = Cusplice({"whatif", "--format", "json", out});
    EXPECT_EQ(whatif.Exit(), 0) << whatif.err;
}

TEST(Import, KernelsOfGraphsAreOpsWhereThatIsAskedFor) {
    std::string database = Path("new.sqlite"), out = Path("graphs.cst");
    Database(database, New());
    ASSERT_EQ(Import(database, out, {"--graphs"}).Exit(), 0);
    Trace trace = OpenGood(out);
    EXPECT_TRUE(Has(Ops(trace.get()),
                    "800+0 t80 created 0/1/2 launch _Z1kIfEvPT_ e0 f0 6 1 1 32 1 1 0\n"
                    "800+0 t80 created 0/1/2 launch _Z5otherv e0 f0 6 1 1 32 1 1 0\n"))
        << Ops(trace.get());
    EXPECT_FALSE(Has(Calls(trace.get()), "cudaGraphLaunch")) << Calls(trace.get());
}

// One public profile had 18,432 of them beside a single kernel.
TEST(Import, WhatNoCallAskedForIsNoOp) {
    std::string database = Path("pages.sqlite"), out = Path("pages.cst");
    const std::string as = "INSERT INTO CUPTI_ACTIVITY_KIND_";
    Database(database,
             New() +
                 "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY ADD COLUMN migrationCause INT;"
                 "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET migrationCause = 0;" +
                 as +
                 "MEMCPY VALUES (915,916,0,1,9,0,77<<24,4096,11,0,0,NULL,2),"
                 "(917,918,0,1,9,0,77<<24,4096,12,0,0,NULL,4),"
                 "(919,920,0,1,9,0,77<<24,4096,13,0,0,NULL,NULL),"
                 "(921,922,0,1,9,0,77<<24,4096,1,0,0,NULL,1);" +
                 as +
                 "KERNEL SELECT 930,940,deviceId,contextId,NULL,streamId,0,globalPid,"
                 "demangledName,shortName,mangledName,1,3,1,1,1,1,1,0,NULL,NULL,0,0,0 FROM "
                 "CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1;" +
                 as + "MEMSET VALUES (941,942,0,1,14,0,77<<24,0,256);");
    Result r = Import(database, out);
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, ": 6 ops, 10 calls")) << r.err;
    EXPECT_TRUE(Has(r.err, "4 migrations of pages of managed memory are left out")) << r.err;
    EXPECT_TRUE(Has(r.err, "2 executions that no call asked for are left out")) << r.err;
    Trace trace = OpenGood(out);
    EXPECT_TRUE(Has(trace->facts, "\"migrations_left_out\":4,\"ops_uncalled_left_out\":2"))
        << trace->facts;
}

// Ids that are all 0 are none.
TEST(Import, WithoutCorrelationsAllExecutionsAreOps) {
    std::string database = Path("zeros.sqlite"), out = Path("zeros.cst");
    Database(database, New() + "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 0;"
                               "DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY;"
                               "DELETE FROM CUPTI_ACTIVITY_KIND_MEMSET;");
    Result r = Import(database, out, {"--graphs"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, ": 4 ops,")) << r.err;
}

TEST(Import, TablesOfOlderExportsAreRead) {
    std::string database = Path("older.sqlite"), out = Path("older.cst");
    Database(database, New() + "ALTER TABLE META_DATA_EXPORT RENAME TO EXPORT_META_DATA;"
                               "DROP TABLE TARGET_INFO_CUDA_CONTEXT_INFO;"
                               "CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId INT, hwId INT, "
                               "vmId INT, processId INT, contextId INT);"
                               "INSERT INTO TARGET_INFO_CUDA_NULL_STREAM VALUES (9,0,0,77,1)");
    ASSERT_EQ(Import(database, out).Exit(), 0);
    Trace trace = OpenGood(out);
    for (const char *fact : {"\"exporter\":\"NVIDIA Nsight Systems\"", "\"schema\":\"3.24.14\"",
                             "\"stream_kinds\":\"known\""})
        EXPECT_TRUE(Has(trace->facts, fact)) << fact << " in " << trace->facts;
    EXPECT_TRUE(Has(Ops(trace.get()), "100+10 t80 legacy 0/1/1 launch")) << Ops(trace.get());
}

std::string GpuTimes(const std::string &trace) {
    Result r =
        Cusplice({"report", "kernels", "--format", "csv", "--fields", "name,calls,gpu_ns", trace});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    return r.out;
}

TEST(Import, TimesOnTheGpuAreKept) {
    std::string database = Path("times.sqlite"), out = Path("times.cst");
    Database(database, New());
    ASSERT_EQ(Import(database, out, {"--graphs"}).Exit(), 0);
    std::string times = GpuTimes(out);
    for (const char *line : {"\nk,2,150\n", "\nother,2,180\n", "cuMemcpyHtoDAsync_v2,2,200\n",
                             "cuMemcpyDtoHAsync_v2,1,50\n", "cuMemsetD8Async,1,10\n"})
        EXPECT_TRUE(Has(times, line)) << line << " in " << times;
    Result r = Cusplice({"whatif", "--format", "json", out});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "\"gpu_measured\": 8")) << r.out;
    // Through an export of our own as well.
    ASSERT_EQ(Cusplice({"export", "--force", "--sqlite", database, out}).Exit(), 0);
    ASSERT_EQ(Import(database, Path("again.cst")).Exit(), 0);
    EXPECT_EQ(GpuTimes(Path("again.cst")), times);
}

// Times before 0 move all others; those of another world are cut.
TEST(Import, OddTimesAreBorne) {
    std::string database = Path("odd.sqlite"), out = Path("odd.cst");
    Database(database,
             std::string(kStrings) +
                 "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, streamId INT, "
                 "shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ "
                 "INT, correlationId INT);"
                 "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-50,-40,7,2,1,1,1,1,1,1,1),"
                 "(9223372036854775807,-9223372036854775807,7,5,2,1,1,1,1,1,2);"
                 "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, correlationId INT, "
                 "nameId INT);"
                 "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (-60,-55,1,10), "
                 "(-9,9223372036854775807,9,11);");
    Result r = Import(database, out);
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Trace trace = OpenGood(out);
    EXPECT_EQ(Ops(trace.get(), false), "0+5 legacy 0/0/1 launch k e0 f0 1 1 1 1 1 1 0\n"
                                       "2305843009213694012+0 legacy 0/0/1 launch other e0 f0 2 1 "
                                       "1 1 1 1 0\n");
    EXPECT_EQ(Calls(trace.get()), "51+0 cudaStreamSynchronize_v3020 flush T 1\n"
                                  "51+4294967295 cudaStreamSynchronize_v3020 step_end none 1\n");
}

TEST(Import, OneProcessIsChosen) {
    std::string database = Path("two.sqlite"), out = Path("two.cst");
    unlink(out.c_str());
    Database(database, New() + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start,end,deviceId,"
                               "contextId,NULL,streamId,correlationId,99<<24,demangledName,"
                               "shortName,mangledName,1,77,1,1,1,1,1,0,NULL,NULL,0,0,0 FROM "
                               "CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1");
    Result r = Import(database, out);
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "choose with --pid N: 77 (4 kernels), 99 (1 kernels)")) << r.err;
    EXPECT_NE(access(out.c_str(), F_OK), 0);
    r = Import(database, out, {"--pid", "98"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "no kernels of process 98, but of 77")) << r.err;
    ASSERT_EQ(Import(database, out, {"--pid=99"}).Exit(), 0);
    Trace trace = OpenGood(out);
    EXPECT_EQ(Ops(trace.get()), "900+0 t99 legacy 0/1/1 launch _Z1kIfEvPT_ e0 f0 77 1 1 1 1 1 0\n");
}

TEST(Import, BadFilesAreRefused) {
    std::string out = Path("bad.cst");
    const std::pair<const char *, const char *> databases[] = {
        {"CREATE TABLE x (y)", "holds no kernels (no table CUPTI_ACTIVITY_KIND_KERNEL)"},
        {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, shortName, gridX)",
         "table CUPTI_ACTIVITY_KIND_KERNEL has no column gridY"},
        {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, shortName, gridX, gridY, gridZ, blockX, "
         "blockY, blockZ)",
         "holds no kernels (table CUPTI_ACTIVITY_KIND_KERNEL is empty)"},
        {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, shortName, gridX, gridY, gridZ, blockX, "
         "blockY, blockZ); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1,1,1,1,1,1,1,1)",
         "has no table StringIds"},
    };
    for (const auto &[sql, error] : databases) {
        std::string database = Path("bad.sqlite");
        Database(database, sql);
        Result r = Import(database, out);
        EXPECT_EQ(r.Exit(), 1) << sql;
        EXPECT_TRUE(Has(r.err, database + ": ") && Has(r.err, error)) << r.err;
    }
    Database(Path("cut.sqlite"), New());
    std::string whole = ReadFile(Path("cut.sqlite"));
    const std::pair<std::string, const char *> files[] = {
        {"", "not an SQLite file"},
        {"text that is longer than its head", "not an SQLite file"},
        {std::string(CST_MAGIC) + "xxxxxxxxxxxxxxxx", "is a trace of cusplice already"},
        {whole.substr(0, 5000), "cannot be read: "},
        {whole.substr(0, 100) + std::string(whole.size() - 100, 'x'), "cannot be read: "},
    };
    for (const auto &[text, error] : files) {
        Result r = Import(Write("bad.sqlite", text), out);
        EXPECT_EQ(r.Exit(), 1) << error;
        EXPECT_TRUE(Has(r.err, error)) << r.err;
    }
    EXPECT_TRUE(Has(Import(Path("none.sqlite"), out).err, "No such file"));
    EXPECT_EQ(Import(Folder(), out).Exit(), 1);
    EXPECT_NE(access(out.c_str(), F_OK), 0);
    EXPECT_EQ(FilesWith(".partial"), Strings{});
}

// What a database can hold beside rows.
TEST(Import, ViewsVirtualTablesAndGeneratedColumnsAreNotRead) {
    const std::string columns = "start, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ";
    const std::string kernels = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (" + columns +
                                "); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
                                "(1,1,1,1,1,1,1,1);";
    const std::pair<std::string, const char *> databases[] = {
        {kernels + "CREATE VIEW StringIds AS SELECT 1 AS id, hex(zeroblob(499000000)) AS value",
         "its StringIds is a view, and an export has tables alone"},
        {"CREATE TABLE StringIds (id, value); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH "
         "RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS start, 1 AS "
         "shortName, 1 AS gridX, 1 AS gridY, 1 AS gridZ, 1 AS blockX, 1 AS blockY, 1 AS blockZ, n "
         "AS rowid FROM r",
         "its CUPTI_ACTIVITY_KIND_KERNEL is a view, and an export has tables alone"},
        {kernels + "CREATE VIRTUAL TABLE StringIds USING fts4(id, value)",
         "its StringIds is a virtual table, and an export has tables alone"},
        {kernels + "CREATE TABLE StringIds (id, value AS (hex(zeroblob(20000000)))); INSERT INTO "
                   "StringIds (id) VALUES (1)",
         "table StringIds has no column value"},
        {"CREATE TABLE StringIds (id, value); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (" + columns +
             ", rowid AS (hex(zeroblob(20000000)))); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
             "VALUES (1,1,1,1,1,1,1,1), (2,1,1,1,1,1,1,1)",
         "cannot be read: "},
    };
    std::string out = Path("view.cst"), database = Path("view.sqlite");
    for (const auto &[sql, error] : databases) {
        Database(database, sql);
        Result r = Import(database, out);
        EXPECT_EQ(r.Exit(), 1) << sql;
        EXPECT_TRUE(Has(r.err, database + ": ") && Has(r.err, error)) << r.err;
        EXPECT_TRUE(Sanitized() || r.peak_kib < 200 << 10) << sql;
    }
    // One of another name is nobody's business.
    Database(database, New() + "; CREATE VIEW mine AS SELECT * FROM StringIds");
    EXPECT_EQ(Import(database, out).Exit(), 0);
}

// Pages of a table that are named again and again: more rows than bytes.
TEST(Import, RowsThatAFileCannotHoldAreCorrupt) {
    std::string database = Path("again.sqlite"), out = Path("again.cst");
    Database(database, New() + "; WITH RECURSIVE r(n) AS (SELECT 100000 UNION ALL SELECT n + 1 "
                               "FROM r WHERE n < 103000) INSERT INTO StringIds SELECT n, 'x' FROM "
                               "r");
    ASSERT_EQ(Import(database, out).Exit(), 0);
    std::string bytes = ReadFile(database);
    auto number = [&](size_t at, int n) {
        uint32_t value = 0;
        for (int i = 0; i < n; i++)
            value = value << 8 | static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)]);
        return value;
    };
    size_t page = number(16, 2), inner = 0;
    for (size_t at = page; at < bytes.size(); at += page)
        if (bytes[at] == 5 && number(at + 3, 2) > 4)
            inner = at; // a table's inner page, with its children
    ASSERT_NE(inner, 0u);
    // All its children are one page, so that rows come again; ids go back, which nobody asked for.
    uint32_t cells = number(inner + 3, 2), first = number(inner + number(inner + 12, 2), 4);
    for (uint32_t i = 0; i < cells; i++)
        for (size_t k = 0; k < 4; k++)
            bytes[inner + number(inner + 12 + 2 * i, 2) + k] =
                static_cast<char>(first >> (24 - 8 * k));
    Write("again.sqlite", bytes);
    Result r = Import(database, out);
    EXPECT_TRUE(WIFEXITED(r.status)) << r.err; // as it likes, but it ends
    EXPECT_TRUE(Sanitized() || r.peak_kib < 200 << 10);
}

TEST(Import, WhatIsThereIsNotReplacedUnaskedAndAFullDiskLeavesNothing) {
    std::string database = Path("new.sqlite"), out = Write("mine.cst", "mine");
    Database(database, New());
    Result r = Cusplice({"import", "-o", out, database});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, out + ": cannot be written: it is there already (--force")) << r.err;
    EXPECT_EQ(ReadFile(out), "mine");
    for (const char *force : {"--force", "--graphs"}) {
        std::string to = *force == '-' && force[2] == 'f' ? out : Path("full.cst");
        r = RunProgram({"/bin/sh", "-c", "ulimit -f 1; exec \"$@\"", "sh", CuspliceProgram(),
                        "import", force, "-o", to, database});
        EXPECT_EQ(r.Exit(), 1);
        EXPECT_TRUE(Has(r.err, to + ": cannot be written: File too large")) << r.err;
    }
    // Full at the last byte.
    ASSERT_EQ(Import(database, Path("whole.cst")).Exit(), 0);
    size_t last = ReadFile(Path("whole.cst")).size() - 1;
    r = RunProgram({"/usr/bin/env", "python3", "-c",
                    "import os,resource,sys; resource.setrlimit(resource.RLIMIT_FSIZE, "
                    "(int(sys.argv[1]), ) * 2); os.execv(sys.argv[2], sys.argv[2:])",
                    std::to_string(last), CuspliceProgram(), "import", "-o", Path("full.cst"),
                    database});
    EXPECT_TRUE(Has(r.err, "full.cst: cannot be written: File too large")) << r.err;
    EXPECT_EQ(ReadFile(out), "mine");
    EXPECT_NE(access(Path("full.cst").c_str(), F_OK), 0);
    EXPECT_EQ(FilesWith(".partial"), Strings{});
}

TEST(ImportVerb, WrongUsageIsTold) {
    const std::pair<Strings, const char *> cases[] = {
        {{"--outptu", "x"}, "the nearest is --output"},
        {{}, "a file is missing"},
        {{"a", "b"}, "b: one file at a time"},
        {{"--pid", "x", "a"}, "--pid x: the number of a process is expected"},
        {{"a", "-o"}, "-o: a value is missing"},
    };
    for (const auto &[arguments, text] : cases) {
        Strings all = {"import"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        Result r = Cusplice(all);
        EXPECT_EQ(r.Exit(), 2) << text;
        EXPECT_TRUE(Has(r.err, text)) << r.err;
    }
}

} // namespace
