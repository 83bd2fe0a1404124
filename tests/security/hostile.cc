// Makes hostile files with the writers of other tests; the tree contains no such file.
#include "tests/security/hostile.h"

#include <string.h>
#include <zstd.h>

#include <vector>

#include "tests/export/query.h"
#include "tests/player/made.h"
#include "tests/security/stage.h"

namespace security {

namespace {

std::string New() {
    return Folder() + "/hostile.cst";
}

std::string Packed(const std::string &raw) {
    std::string frame(ZSTD_compressBound(raw.size()), 0);
    frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 1));
    return frame;
}

// Records of the GPU's work, as they stand in a block.
std::string GpuRecords(size_t n) {
    cst_gpu gpu = {};
    gpu.head.type = CST_GPU;
    gpu.head.words = sizeof gpu / 8;
    gpu.head.thread = 1;
    gpu.gpu_stream = 7;
    gpu.gpu_ns = 5;
    std::string all;
    all.reserve(n * sizeof gpu);
    for (size_t i = 0; i < n; i++)
        all.append(reinterpret_cast<const char *>(&gpu), sizeof gpu);
    return all;
}

const char kKernels[] =
    "CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,"
    "streamId INTEGER,correlationId INTEGER,globalPid INTEGER,demangledName INTEGER,shortName "
    "INTEGER,mangledName INTEGER,gridX INTEGER,gridY INTEGER,gridZ INTEGER,blockX INTEGER,blockY "
    "INTEGER,blockZ INTEGER,dynamicSharedMemory INTEGER);";
const char kKernel[] =
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,2,0,1,7,1,NULL,1,1,1,1,1,1,1,1,1,0);";

std::string DatabaseOf(const std::string &sql) {
    std::string path = Folder() + "/hostile.sqlite";
    Database(path, sql);
    return path;
}

} // namespace

std::string TraceWith(const std::function<void(Synth *)> &add, bool packed) {
    std::string path = New();
    Synth s(path, packed);
    s.Facts("{\"argv\":[\"x\"]}");
    s.Thread(100, "main");
    uint32_t stream = s.Stream(CST_STREAM_CREATED, 0x77), kernel = s.Kernel("_Z6kernelPf");
    s.Op(stream, kernel);
    s.Flush(stream, 1, "cuStreamSynchronize", "sync");
    s.Sync(stream);
    add(&s);
    EXPECT_EQ(s.Close(), 0);
    return path;
}

std::string ReplayableWith(const std::function<uint32_t(Made *)> &module) {
    std::string path = New();
    Made m(path);
    uint32_t lane = m.Lane(CST_STREAM_CREATED, 1);
    uint32_t code = m.Code(module(&m), "chain", {8, 4, 4, 4});
    uint64_t a = m.Alloc(0, 4096);
    m.Launch(lane, code, 1, 64, {a, 1, 2, 64});
    m.Sync(lane);
    EXPECT_EQ(m.Close(), 0);
    return path;
}

std::string ReplayableWithFacts(const std::string &facts) {
    std::string path = New();
    Made m(path);
    m.s.Facts(facts);
    m.Module();
    uint32_t lane = m.Lane(CST_STREAM_CREATED, 1);
    uint64_t a = m.Alloc(0, 4096);
    for (int step = 0; step < 8; step++) {
        for (uint32_t i = 0; i < 16; i++)
            m.Chain(lane, a, 3, i, 256);
        m.Sync(lane);
    }
    m.Check(a, 1024);
    EXPECT_EQ(m.Close(), 0);
    return path;
}

std::string ImageOf(uint64_t bytes, const std::vector<Part> &parts) {
    return ReplayableWith([&](Made *m) {
        auto *module =
            static_cast<cst_module *>(cst_sink_add(&m->s.sink, CST_MODULE, sizeof(cst_module)));
        module->head.thread = 1;
        module->id = 1;
        module->form = CST_MODULE_IMAGE;
        module->bytes = bytes;
        module->check = cst_checksum("AAAAAAAA", 8);
        for (const Part &part : parts)
            m->Data(CST_DATA_IMAGE, 1, part.offset, std::string(part.bytes, 'A'));
        return 1;
    });
}

std::string ImageInFile(const std::string &path, uint64_t offset, uint64_t bytes) {
    return ReplayableWith([&](Made *m) { return m->FileModule(path, offset, bytes, 1, ""); });
}

// f(A<int, int>), of which each further argument is A of the one before, twice: by substitutions.
std::string NameThatDoubles(unsigned depth) {
    const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string name = "_Z1f1AIiiE";
    for (unsigned i = 0; i < depth; i++) {
        std::string last = std::string("S") + digits[i] + "_";
        name += "S_I" + last + last + "E";
    }
    return name;
}

std::string GpuStreams(unsigned n) {
    return TraceWith(
        [&](Synth *s) {
            for (unsigned i = 0; i < n; i++)
                s->GpuStream(1, 8 + i);
            for (unsigned i = 0; i < 2 * n; i++)
                s->Gpu(8 + n - 1, CST_GPU_KERNEL, "_Z6kernelPf");
        },
        true);
}

std::string Bomb() {
    return TraceWith([](Synth *s) {
        std::string raw = GpuRecords((CST_BLOCK_MAX - 1024) / sizeof(cst_gpu)), frame = Packed(raw);
        s->Block();
        for (int i = 0; i < 40; i++)
            cst_out_block(&s->out, CST_BLOCK_RECORDS, CST_BLOCK_ZSTD, frame.data(), frame.size(),
                          raw.size());
    });
}

std::string BlockOf(uint64_t raw, size_t real) {
    return TraceWith([&](Synth *s) {
        std::string frame = Packed(GpuRecords(real / sizeof(cst_gpu)));
        s->Block();
        cst_out_block(&s->out, CST_BLOCK_RECORDS, CST_BLOCK_ZSTD, frame.data(), frame.size(), raw);
    });
}

std::string EndlessView(const std::string &name) {
    return DatabaseOf(std::string("CREATE TABLE StringIds(id INTEGER PRIMARY KEY,value TEXT);"
                                  "INSERT INTO StringIds VALUES(1,'k');") +
                      "CREATE VIEW " + name +
                      " AS WITH RECURSIVE r(n) AS (SELECT 1 "
                      "UNION ALL SELECT n+1 FROM r) SELECT n AS start,n AS end,0 AS deviceId,1 AS "
                      "contextId,7 AS streamId,n AS correlationId,NULL AS globalPid,1 AS "
                      "demangledName,1 AS shortName,1 AS mangledName,1 gridX,1 gridY,1 gridZ,1 "
                      "blockX,1 blockY,1 blockZ,0 dynamicSharedMemory,n AS rowid FROM r;");
}

std::string HugeText() {
    return DatabaseOf(std::string("CREATE TABLE ") + kKernels + kKernel +
                      "CREATE VIEW StringIds AS SELECT 1 AS id,hex(zeroblob(499000000)) AS value;");
}

std::string HugeColumn() {
    return DatabaseOf(
        std::string("CREATE TABLE ") + kKernels + kKernel +
        "CREATE TABLE StringIds(id INTEGER PRIMARY KEY,value TEXT GENERATED ALWAYS "
        "AS (hex(zeroblob(150000000))) VIRTUAL);INSERT INTO StringIds(id) VALUES(1);");
}

std::string ReachingOut(const std::string &victim) {
    return DatabaseOf(std::string("CREATE TABLE ") + kKernels + kKernel +
                      "CREATE VIEW StringIds AS SELECT 1 AS id,writefile('" + victim +
                      "','x')||load_extension('" + victim + "')||readfile('" + victim +
                      "') AS value;");
}

} // namespace security
