// Promise: many threads with their own streams make most calls at once; results are right, nothing
// hangs, and ThreadSanitizer reports nothing. A seed determines what each thread does.
#include "tests/unit/sim/sim.h"

#include <random>

namespace sim {
namespace {

class Stress : public Sim {};

struct Worker {
    CUcontext ctx;
    CUfunction mix, empty;
    unsigned seed;
    int failures = 0;

    void Check(CUresult result, const char *what) {
        if (result != CUDA_SUCCESS && failures++ == 0)
            ADD_FAILURE() << what << " = " << result << " seed " << seed;
    }

#define RUN(call) Check(call, #call)

    void Launch(CUdeviceptr p, int v, CUstream s, unsigned &want) {
        void *args[] = {&p, &v};
        RUN(cuLaunchKernel(mix, 1, 1, 1, 1, 1, 1, 0, s, args, nullptr));
        want = want * 3 + static_cast<unsigned>(v);
    }

    // A graph of n nodes, captured on s, changed, launched twice.
    void Graph(CUdeviceptr p, CUstream s, int n, unsigned &want) {
        CUgraph graph;
        CUgraphExec exec;
        unsigned ignored = 0;
        RUN(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        for (int i = 0; i < n; i++)
            Launch(p, i, s, ignored);
        RUN(cuStreamEndCapture(s, &graph));
        RUN(cuGraphInstantiate(&exec, graph, 0));
        std::vector<CUgraphNode> nodes(static_cast<size_t>(n));
        size_t count = nodes.size();
        RUN(cuGraphGetNodes(graph, nodes.data(), &count));
        for (int round = 0; round < 2; round++) {
            RUN(cuGraphLaunch(exec, s));
            for (int i = 0; i < n; i++)
                want = want * 3 + static_cast<unsigned>(i == 0 ? round * 10 : i);
            CUDA_KERNEL_NODE_PARAMS k;
            int v = 10;
            void *args[] = {&p, &v};
            RUN(cuGraphKernelNodeGetParams(nodes[0], &k));
            k.kernelParams = args;
            RUN(cuGraphExecKernelNodeSetParams(exec, nodes[0], &k));
        }
        RUN(cuGraphExecDestroy(exec));
        RUN(cuGraphDestroy(graph));
    }

    void Run() {
        std::mt19937 random(seed);
        CUstream s, other;
        CUevent e;
        CUdeviceptr p;
        int *pinned;
        unsigned want = 0;
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        RUN(cuCtxSetCurrent(ctx));
        RUN(cuThreadExchangeStreamCaptureMode(&mode));
        RUN(cuStreamCreate(&s, seed % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        RUN(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        RUN(cuEventCreate(&e, 0));
        RUN(cuMemAllocAsync(&p, 4, s));
        RUN(cuMemHostAlloc(reinterpret_cast<void **>(&pinned), 4, 0));
        RUN(cuMemsetD32Async(p, 0, 1, s));
        for (int i = 0; i < 250; i++) {
            switch (random() % 8) {
            case 0:
            case 1:
            case 2:
                Launch(p, i, s, want);
                break;
            case 3: // over to the other stream and back
                RUN(cuEventRecord(e, s));
                RUN(cuStreamWaitEvent(other, e, 0));
                Launch(p, i, other, want);
                RUN(cuEventRecord(e, other));
                RUN(cuStreamWaitEvent(s, e, 0));
                break;
            case 4:
                if (seed % 2) // a blocking stream that captures would take the legacy stream from
                              // the others
                    Graph(p, s, 1 + static_cast<int>(random() % 5), want);
                break;
            case 5:
                RUN(cuMemcpyDtoHAsync(pinned, p, 4, s));
                RUN(cuStreamSynchronize(s));
                if (static_cast<unsigned>(*pinned) != want && failures++ == 0)
                    ADD_FAILURE() << "seed " << seed << " step " << i;
                break;
            case 6: {
                CUdeviceptr scratch;
                RUN(cuMemAllocAsync(&scratch, 256, s));
                RUN(cuMemsetD8Async(scratch, 1, 256, s));
                RUN(cuMemFreeAsync(scratch, s));
                break;
            }
            default:
                RUN(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, random() % 2 ? nullptr : s, nullptr,
                                   nullptr));
                break;
            }
        }
        unsigned got = 0;
        RUN(cuMemcpyDtoHAsync(&got, p, 4, s));
        EXPECT_EQ(want, got) << "seed " << seed;
        RUN(cuMemFreeAsync(p, s));
        RUN(cuStreamDestroy(other));
        RUN(cuStreamDestroy(s));
        RUN(cuEventDestroy(e));
        RUN(cuMemFreeHost(pinned));
    }
};

TEST_F(Stress, ThreadsOnStreamsOfTheirOwn) {
    for (unsigned delay : {0u, 20u}) {
        cuSimSetDelay(delay);
        std::vector<Worker> workers;
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < 6; i++)
            workers.push_back({ctx, Func("mix"), Func("empty"), delay * 100 + i});
        for (Worker &worker : workers)
            threads.emplace_back([&worker] { worker.Run(); });
        for (std::thread &thread : threads)
            thread.join();
    }
}

} // namespace
} // namespace sim
