#include "tests/unit/stream/fake_driver.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace fake {

thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
thread_local int mode_exchanges;
namespace {

struct Graph {
    std::vector<Node *> nodes;
};
struct Exec {
    std::vector<Node> nodes;
    Graph *graph;
};

Stream legacy_stream, per_thread_stream;
std::vector<std::unique_ptr<Stream>> streams;
std::vector<std::unique_ptr<Function>> functions;
unsigned long long next_id = 1;
thread_local std::vector<CUcontext> contexts = {(CUcontext)0x1000}; // the last is current

std::mutex mutex; // the library has threads of its own
struct Held {
    CUcontext context;
    std::function<void()> frees;
};
std::map<void *, Held> held;
int destroyed_wrongly;

void Hold(void *object, std::function<void()> frees) {
    CUcontext context = nullptr;
    driver().table.cuCtxGetCurrent(&context);
    std::lock_guard<std::mutex> hold(mutex);
    held[object] = {context, std::move(frees)};
}

void Destroy(void *object) {
    std::lock_guard<std::mutex> hold(mutex);
    auto found = held.find(object);
    if (found == held.end()) {
        destroyed_wrongly++;
        return;
    }
    found->second.frees();
    held.erase(found);
}

CUresult Enter(const char *name) {
    {
        std::lock_guard<std::mutex> hold(mutex);
        auto &calls = driver().calls;
        auto known = calls.find(name);
        (known == calls.end() ? calls[name] : known->second)++;
    }
    return driver().fail(name);
}

// A function of any type that does nothing.
template <typename... Args> auto Refuse(CUresult (*)(Args...)) -> CUresult (*)(Args...) {
    return +[](Args...) -> CUresult { return CUDA_ERROR_NOT_SUPPORTED; };
}

std::string Text(CUstream stream, const Node &node) {
    auto *function = reinterpret_cast<Function *>(node.f);
    uint64_t a;
    uint32_t b;
    memcpy(&a, node.params.data(), 8);
    memcpy(&b, node.params.data() + 8, 4);
    return Line(stream, function->name, a, b, node.dims[0]);
}

void Note(CUstream stream, const Node &node) {
    driver().journal.push_back(driver().lines ? Text(stream, node) : "");
}

// Does each node of the graph come behind the one in front of it alone?
bool IsARow(const Exec &exec) {
    for (size_t i = 0; i < exec.nodes.size(); i++) {
        const auto &behind = exec.nodes[i].behind;
        if (behind.size() > 1 || behind.empty() != (i == 0) ||
            (i > 0 && behind[0] != exec.graph->nodes[i - 1]))
            return false;
    }
    return true;
}

void NoteBehind(CUstream stream, const Exec &exec) {
    std::map<const Node *, std::string> texts;
    for (size_t i = 0; i < exec.nodes.size(); i++)
        texts[exec.graph->nodes[i]] = Text(stream, exec.nodes[i]);
    for (const Node &node : exec.nodes)
        for (const Node *before : node.behind)
            driver().behind[Text(stream, node)].insert(texts[before]);
}

Node MakeNode(CUfunction f, std::vector<unsigned> dims, void **params) {
    Node node{f, std::move(dims), std::vector<uint8_t>(12), {}};
    memcpy(node.params.data(), params[0], 8);
    memcpy(node.params.data() + 8, params[1], 4);
    return node;
}

void Capture(Stream *stream, const Node &node) {
    stream->captured.push_back(new Node(node));
    stream->captured.back()->behind = stream->next;
    stream->next = {stream->captured.back()};
}

CUresult LaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned smem, CUstream stream, void **params, void **) {
    if (CUresult failed = Enter("cuLaunchKernel"))
        return failed;
    if (gx == 0 || bx > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    Node node = MakeNode(f, {gx, gy, gz, bx, by, bz, smem}, params);
    if (Of(stream)->capturing)
        Capture(Of(stream), node);
    else
        Note(stream, node);
    return CUDA_SUCCESS;
}

} // namespace

Driver &driver() {
    static Driver instance;
    return instance;
}

size_t LoseAll(CUcontext context) {
    std::lock_guard<std::mutex> hold(mutex);
    size_t before = held.size();
    for (auto each = held.begin(); each != held.end();) {
        if (context && each->second.context != context) {
            ++each;
            continue;
        }
        each->second.frees();
        each = held.erase(each);
    }
    return before - held.size();
}

int DestroyedWrongly() {
    return std::exchange(destroyed_wrongly, 0);
}

Stream *Of(CUstream stream) {
    if (!stream || stream == CU_STREAM_LEGACY)
        return &legacy_stream;
    if (stream == CU_STREAM_PER_THREAD)
        return &per_thread_stream;
    return reinterpret_cast<Stream *>(stream);
}

std::string Line(CUstream stream, const std::string &name, uint64_t a, uint32_t b, unsigned grid) {
    std::string where = Of(stream) == &legacy_stream ? "L" : "S" + std::to_string(Of(stream)->id);
    return where + " " + name + "(" + std::to_string(grid) + "," + std::to_string(a) + "," +
           std::to_string(b) + ")";
}

CUstream MakeStream(unsigned flags) {
    streams.push_back(std::make_unique<Stream>());
    streams.back()->flags = flags;
    streams.back()->id = next_id++;
    return reinterpret_cast<CUstream>(streams.back().get());
}

CUfunction MakeFunction(const std::string &name) {
    functions.push_back(std::make_unique<Function>());
    functions.back()->name = name;
    functions.back()->params = {{0, 8}, {8, 4}};
    return reinterpret_cast<CUfunction>(functions.back().get());
}

CUresult LaunchEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
    return driver().table.cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                                         c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream,
                                         params, extra);
}

CUfunction CopyFunction() {
    static CUfunction f = MakeFunction("copy");
    return f;
}

CUfunction FillFunction() {
    static CUfunction f = MakeFunction("fill");
    return f;
}

CUresult AsLaunch(CUfunction f, size_t size, uint64_t a, uint32_t b, CUstream stream) {
    void *params[2] = {&a, &b};
    return driver().table.cuLaunchKernel(f, (unsigned)size, 1, 1, 1, 1, 1, 0, stream, params,
                                         nullptr);
}

CUresult Copy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return AsLaunch(CopyFunction(), bytes, dst, (uint32_t)src, stream);
}

CUresult Fill(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream) {
    return AsLaunch(FillFunction(), n, dst, value, stream);
}

cus_memset FillCall(CUstream stream, cus_abi abi, CUdeviceptr dst) {
    cus_memset memset = {};
    memset.stream = {stream, abi};
    memset.dst = dst;
    memset.value = 7;
    memset.elem = 1;
    memset.width = 64;
    memset.height = 1;
    memset.real = (void *)Fill;
    return memset;
}

/* The same graphs are built in the same steps, however slow the machine is. */
static const int any_build_time = setenv("CUSPLICE_BUILD_US", "0", 0);

void Reset() {
    // Calls of the driver are made by the test's threads, but where it says otherwise.
    setenv("CUSPLICE_SUBMIT_NS", "0", 0);
    driver().journal.clear();
    driver().behind.clear();
    driver().calls.clear();
    driver().fail = {};
    driver().lines = true;
    driver().building = [](unsigned) {};
    driver().shared_max = -1;
    legacy_stream.program_captures = false;
    cus_driver t = {};
    // What no test calls must not be NULL all the same.
#define CUS_OWN_NEEDED(name, ...) t.name = Refuse(t.name);
#include "shim/api/own.def"
    t.cuCtxGetCurrent = [](CUcontext *context) {
        *context = contexts.empty() ? nullptr : contexts.back();
        return CUDA_SUCCESS;
    };
    t.cuCtxPushCurrent_v2 = [](CUcontext context) {
        contexts.push_back(context);
        return CUDA_SUCCESS;
    };
    t.cuCtxPopCurrent_v2 = [](CUcontext *context) {
        if (contexts.empty())
            return CUDA_ERROR_INVALID_CONTEXT;
        *context = contexts.back();
        contexts.pop_back();
        return CUDA_SUCCESS;
    };
    t.cuStreamGetFlags = [](CUstream stream, unsigned *flags) {
        *flags = Of(stream)->flags;
        return CUDA_SUCCESS;
    };
    t.cuStreamGetPriority = [](CUstream stream, int *priority) {
        *priority = Of(stream)->priority;
        return CUDA_SUCCESS;
    };
    t.cuStreamGetId = [](CUstream stream, unsigned long long *id) {
        *id = Of(stream)->id;
        return CUDA_SUCCESS;
    };
    t.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        *status = Of(stream)->program_captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                               : CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    };
    t.cuStreamQuery = [](CUstream stream) {
        driver().calls["cuStreamQuery"]++;
        return Of(stream)->busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    t.cuStreamCreateWithPriority = [](CUstream *stream, unsigned flags, int) {
        if (CUresult failed = Enter("cuStreamCreateWithPriority"))
            return failed;
        *stream = MakeStream(flags);
        Hold(*stream, [] {});
        return CUDA_SUCCESS;
    };
    t.cuStreamDestroy_v2 = [](CUstream stream) {
        Destroy(stream);
        return Enter("cuStreamDestroy_v2");
    };
    t.cuStreamBeginCapture_v2 = [](CUstream stream, CUstreamCaptureMode) {
        if (CUresult failed = Enter("cuStreamBeginCapture_v2"))
            return failed;
        Of(stream)->capturing = true;
        Of(stream)->captured.clear();
        Of(stream)->next.clear();
        return CUDA_SUCCESS;
    };
    t.cuStreamEndCapture = [](CUstream stream, CUgraph *graph) {
        Of(stream)->capturing = false;
        if (CUresult failed = Enter("cuStreamEndCapture")) {
            for (Node *node : Of(stream)->captured)
                delete node;
            return failed;
        }
        auto *made = new Graph{Of(stream)->captured};
        Hold(made, [made] {
            for (Node *node : made->nodes)
                delete node;
            delete made;
        });
        *graph = reinterpret_cast<CUgraph>(made);
        return CUDA_SUCCESS;
    };
    t.cuStreamGetCaptureInfo_v3 = [](CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *,
                                     CUgraph *, const CUgraphNode **deps, const CUgraphEdgeData **,
                                     size_t *n) {
        if (CUresult failed = Enter("cuStreamGetCaptureInfo_v3"))
            return failed;
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        *deps = reinterpret_cast<const CUgraphNode *>(&Of(stream)->captured.back());
        *n = 1;
        return CUDA_SUCCESS;
    };
    t.cuStreamUpdateCaptureDependencies_v2 = [](CUstream stream, CUgraphNode *nodes,
                                                const CUgraphEdgeData *, size_t n, unsigned flags) {
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
            Of(stream)->next.clear();
        for (size_t i = 0; i < n; i++)
            Of(stream)->next.push_back(reinterpret_cast<Node *>(nodes[i]));
        return CUDA_SUCCESS;
    };
    t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *mode) {
        mode_exchanges++;
        std::swap(capture_mode, *mode);
        return CUDA_SUCCESS;
    };
    t.cuLaunchKernel = LaunchKernel;
    t.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *params) {
        if (CUresult failed = Enter("cuGraphKernelNodeGetParams_v2"))
            return failed;
        auto *node = reinterpret_cast<Node *>(handle);
        const std::vector<unsigned> &d = node->dims;
        *params = {};
        params->func = node->f;
        params->gridDimX = d[0], params->gridDimY = d[1], params->gridDimZ = d[2];
        params->blockDimX = d[3], params->blockDimY = d[4], params->blockDimZ = d[5];
        return CUDA_SUCCESS;
    };
    // The last edge first: nobody promises an order.
    t.cuGraphGetEdges_v2 = [](CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *,
                              size_t *n) {
        if (CUresult failed = Enter("cuGraphGetEdges_v2"))
            return failed;
        const std::vector<Node *> &nodes = reinterpret_cast<Graph *>(graph)->nodes;
        size_t room = *n;
        *n = 0;
        for (size_t i = nodes.size(); --i > 0 && *n < room; ++*n) {
            from[*n] = reinterpret_cast<CUgraphNode>(nodes[i - 1]);
            to[*n] = reinterpret_cast<CUgraphNode>(nodes[i]);
        }
        return CUDA_SUCCESS;
    };
    t.cuGraphInstantiateWithFlags = [](CUgraphExec *exec, CUgraph graph, unsigned long long) {
        auto *from = reinterpret_cast<Graph *>(graph);
        driver().building((unsigned)from->nodes.size());
        if (CUresult failed = Enter("cuGraphInstantiateWithFlags"))
            return failed;
        auto *made = new Exec{{}, from};
        for (Node *node : from->nodes)
            made->nodes.push_back(*node);
        Hold(made, [made] { delete made; });
        *exec = reinterpret_cast<CUgraphExec>(made);
        return CUDA_SUCCESS;
    };
    t.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec exec, CUgraphNode handle,
                                             const CUDA_KERNEL_NODE_PARAMS *params) {
        if (CUresult failed = Enter("cuGraphExecKernelNodeSetParams_v2"))
            return failed;
        auto *to = reinterpret_cast<Exec *>(exec);
        for (size_t i = 0; i < to->nodes.size(); i++)
            if (to->graph->nodes[i] == reinterpret_cast<Node *>(handle)) {
                to->nodes[i] = MakeNode(params->func,
                                        {params->gridDimX, params->gridDimY, params->gridDimZ,
                                         params->blockDimX, params->blockDimY, params->blockDimZ,
                                         params->sharedMemBytes},
                                        params->kernelParams);
                to->nodes[i].behind = to->graph->nodes[i]->behind;
            }
        return CUDA_SUCCESS;
    };
    t.cuGraphLaunch = [](CUgraphExec exec, CUstream stream) {
        if (CUresult failed = Enter("cuGraphLaunch"))
            return failed;
        const auto *launched = reinterpret_cast<Exec *>(exec);
        for (const Node &node : launched->nodes)
            Note(stream, node);
        driver().behind.clear();
        if (!IsARow(*launched))
            NoteBehind(stream, *launched);
        return CUDA_SUCCESS;
    };
    t.cuGraphExecDestroy = [](CUgraphExec exec) {
        Destroy(exec);
        return Enter("cuGraphExecDestroy");
    };
    t.cuGraphDestroy = [](CUgraph graph) {
        Destroy(graph);
        return Enter("cuGraphDestroy");
    };
    t.cuKernelGetName = [](const char **, CUkernel) { return CUDA_ERROR_INVALID_HANDLE; };
    t.cuFuncGetName = [](const char **name, CUfunction f) {
        *name = reinterpret_cast<Function *>(f)->name.c_str();
        return CUDA_SUCCESS;
    };
    t.cuKernelGetParamInfo = [](CUkernel, size_t, size_t *, size_t *) {
        return CUDA_ERROR_INVALID_HANDLE;
    };
    t.cuFuncGetParamInfo = [](CUfunction f, size_t i, size_t *offset, size_t *size) {
        auto *function = reinterpret_cast<Function *>(f);
        if (i >= function->params.size())
            return CUDA_ERROR_INVALID_VALUE;
        *offset = function->params[i].first;
        *size = function->params[i].second;
        return CUDA_SUCCESS;
    };
    t.cuFuncGetAttribute = [](int *value, CUfunction_attribute attribute, CUfunction) {
        if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
            driver().calls["cuFuncGetAttribute, shared"]++;
        *value = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? driver().shared_max
                 : attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK       ? 512
                                                                              : 0;
        return CUDA_SUCCESS;
    };
    t.cuKernelGetFunction = [](CUfunction *, CUkernel) { return CUDA_ERROR_INVALID_HANDLE; };
    // The watchdog of the test before may be looking: what stays as it is is not written.
    void *fresh[sizeof t / sizeof(void *)], *old[sizeof t / sizeof(void *)];
    static_assert(sizeof fresh == sizeof t, "pointers only");
    memcpy(fresh, &t, sizeof t);
    memcpy(old, &driver().table, sizeof t);
    for (size_t i = 0; i < sizeof t / sizeof(void *); i++)
        if (fresh[i] != old[i])
            memcpy(reinterpret_cast<char *>(&driver().table) + i * sizeof(void *), &fresh[i],
                   sizeof fresh[i]);
}

} // namespace fake
