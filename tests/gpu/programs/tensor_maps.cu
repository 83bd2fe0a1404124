/*
 * One kernel rewrites tensor maps in device memory, and the next one uses them (HAZARDS G8):
 * `--fenced` with the fences of the PTX manual, `--bare` without, as in some libraries. Needs
 * compute capability 9.0. Prints one JSON line. tests/gpu/cases.py runs it plain, preloaded and by
 * `cusplice verify`; it knows nothing of cusplice.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status_ = (int)(call);                                                                 \
        if (status_ != 0) {                                                                        \
            fprintf(stderr, "tensor_maps: %s: %d (line %d)\n", #call, status_, __LINE__);          \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

/* Square tensors of words, of which a tile is brought in. */
enum { SIDE = 64, WIDE = 32, HIGH = 16, TILE = WIDE * HIGH, TENSORS = 8, STEPS = 150, PAIRS = 16 };

static __host__ __device__ unsigned content(unsigned tensor, unsigned at) {
    unsigned word = tensor * 0x9e3779b9u + at * 2654435761u;
    return word ^ word >> 15;
}

__global__ void fill_tensor(unsigned *words, unsigned tensor) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    words[at] = content(tensor, at);
}

/* A warp: a map has 32 words. */
__global__ void write_map(CUtensorMap *slot, const CUtensorMap *maps, int which, int fenced) {
    ((volatile unsigned *)slot)[threadIdx.x] = ((const unsigned *)(maps + which))[threadIdx.x];
    __syncwarp();
#if __CUDA_ARCH__ >= 900
    if (fenced)
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
#endif
}

#if __CUDA_ARCH__ >= 900
static __device__ unsigned shared_address(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

/* One thread asks for the tile, all wait for it. */
static __device__ void bring_in(const CUtensorMap *slot, int x, int y, unsigned *tile,
                                unsigned long long *barrier) {
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
            "r"((unsigned)(TILE * sizeof *tile))
            : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
                     "bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(tile)),
                     "l"(slot), "r"(x), "r"(y), "r"(shared_address(barrier))
                     : "memory");
    }
    unsigned arrived = 0;
    while (!arrived)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(arrived)
                     : "r"(shared_address(barrier))
                     : "memory");
}
#endif

__global__ void use_map(const CUtensorMap *slot, int x, int y, unsigned *sum, int fenced) {
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) unsigned tile[TILE];
    __shared__ alignas(8) unsigned long long barrier;
    if (fenced && threadIdx.x == 0)
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(slot)
                     : "memory");
    __syncthreads();
    bring_in(slot, x, y, tile, &barrier);
    for (unsigned i = threadIdx.x; i < TILE; i += blockDim.x)
        sum[i] = sum[i] * 31 + tile[i];
#endif
}

/* One map for each tensor, on the device. */
static CUtensorMap *make_maps(void) {
    CUtensorMap maps[TENSORS], *out;
    void *encode = NULL;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                           cudaEnableDefault, &found));
    CHECK(!encode);
    for (unsigned i = 0; i < TENSORS; i++) {
        const cuuint64_t sides[] = {SIDE, SIDE}, stride = SIDE * sizeof(unsigned);
        const cuuint32_t box[] = {WIDE, HIGH}, each[] = {1, 1};
        unsigned *words;
        CHECK(cudaMalloc(&words, SIDE * stride));
        fill_tensor<<<SIDE * SIDE / 128, 128>>>(words, i);
        CHECK(((decltype(&cuTensorMapEncodeTiled))encode)(
            &maps[i], CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, words, sides, &stride, box, each,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    }
    CHECK(cudaMalloc(&out, sizeof maps));
    CHECK(cudaMemcpy(out, maps, sizeof maps, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    return out;
}

/* Two places for maps, in turn. Returns how many words of the sum are not what they should be. */
static unsigned run(int fenced, uint64_t *hash) {
    CUtensorMap *maps = make_maps(), *slots;
    cudaStream_t stream;
    unsigned *sum, wrong = 0;
    std::vector<unsigned> wanted(TILE, 0), found(TILE);
    CHECK(cudaMalloc(&slots, 2 * sizeof *slots));
    CHECK(cudaMalloc(&sum, TILE * sizeof *sum));
    CHECK(cudaMemset(sum, 0, TILE * sizeof *sum));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned i = 0; i < PAIRS; i++) {
            unsigned which = (step * 5 + i * 3) % TENSORS;
            int x = (int)((step + i) % 2 * WIDE), y = (int)((step + 3 * i) % 4 * HIGH);
            write_map<<<1, 32, 0, stream>>>(slots + i % 2, maps, (int)which, fenced);
            use_map<<<1, 128, 0, stream>>>(slots + i % 2, x, y, sum, fenced);
            for (unsigned k = 0; k < TILE; k++)
                wanted[k] = wanted[k] * 31 + content(which, (y + k / WIDE) * SIDE + x + k % WIDE);
        }
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaMemcpy(found.data(), sum, TILE * sizeof *sum, cudaMemcpyDeviceToHost));
    *hash = 14695981039346656037u;
    for (unsigned k = 0; k < TILE; k++) {
        wrong += found[k] != wanted[k];
        *hash = (*hash ^ found[k]) * 1099511628211u;
    }
    return wrong;
}

int main(int argc, char **argv) {
    const char *mode = argc == 2 ? argv[1] : "";
    int fenced = strcmp(mode, "--fenced") == 0, major;
    if (!fenced && strcmp(mode, "--bare") != 0) {
        fprintf(stderr, "usage: tensor_maps --bare | --fenced\n");
        return 2;
    }
    alarm(60); /* a map that is half written may name memory that never answers */
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    uint64_t hash = 0;
    unsigned wrong = major < 9 ? 0 : run(fenced, &hash);
    printf("{\"program\": \"tensor_maps\", \"mode\": \"%s\", \"major\": %d, \"wrong\": %u, "
           "\"hash\": \"%016llx\"}\n",
           mode + 2, major, wrong, (unsigned long long)hash);
    return 0;
}
