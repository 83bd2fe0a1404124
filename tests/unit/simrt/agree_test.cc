// Promise: the CPU form of each kernel gives the device's result: integers exactly, floats closely.
// On the simulator both sides are the CPU form and only the route differs; on a GPU (with
// CUSIM_KERNELS=.../libcusim_kernels.so) the test compares CPU and GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "harness/sim/cusim_kernel.h"
#include "tests/unit/simrt/launch.h"

namespace {

using find_fn = const struct cusim_kernel *(*)(const char *);

find_fn finder() {
    const char *path = getenv("CUSIM_KERNELS");
    void *library = dlopen(path ? path : "libcusim_kernels.so", RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    return library ? (find_fn)dlsym(library, "cusim_kernel_find") : nullptr;
}

/* One buffer on both sides, filled alike. */
struct Buffer {
    enum Kind { FLOATS, WORDS } kind;
    std::vector<unsigned> cpu;
    unsigned *gpu = nullptr;

    Buffer(Kind k, size_t count, unsigned seed, unsigned limit = 0) : kind(k), cpu(count) {
        unsigned s = seed * 747796405u + 1;
        for (unsigned &w : cpu) {
            s = s * 1664525u + 1013904223u;
            float f = (float)(s >> 8) / (1 << 23) - 1.0f;
            if (kind == FLOATS) {
                memcpy(&w, &f, 4);
            } else {
                w = limit ? (s >> 8) % limit : s;
            }
        }
        EXPECT_EQ(cudaMalloc((void **)&gpu, count * 4), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(gpu, cpu.data(), count * 4, cudaMemcpyHostToDevice), cudaSuccess);
    }

    ~Buffer() { cudaFree(gpu); }

    void compare(const std::string &name) {
        std::vector<unsigned> out(cpu.size());
        ASSERT_EQ(cudaMemcpy(out.data(), gpu, out.size() * 4, cudaMemcpyDeviceToHost), cudaSuccess);
        for (size_t i = 0; i < out.size(); i++) {
            if (kind == WORDS) {
                ASSERT_EQ(out[i], cpu[i]) << name << " " << i;
            } else {
                float g, c;
                memcpy(&g, &out[i], 4);
                memcpy(&c, &cpu[i], 4);
                ASSERT_NEAR(g, c, 1e-5 + 1e-5 * std::fabs(c)) << name << " " << i;
            }
        }
    }
};

/* An argument: a buffer (its address differs on the two sides) or a value. */
struct Argument {
    Buffer *buffer = nullptr;
    char value[16] = {};
    Argument(Buffer &b) : buffer(&b) {}
    template <class T> Argument(T v) {
        static_assert(sizeof v <= sizeof value, "too large");
        memcpy(value, &v, sizeof v);
    }
};

void both(const char *name, const void *stub, dim3 grid, dim3 block,
          std::vector<Argument> arguments, unsigned shared = 0) {
    static find_fn find = finder();
    ASSERT_NE(find, nullptr);
    const struct cusim_kernel *kernel = find(name);
    ASSERT_NE(kernel, nullptr) << name;
    ASSERT_EQ(kernel->n_params, arguments.size()) << name;
    std::vector<void *> cpu, gpu, pointers(2 * arguments.size());
    for (size_t i = 0; i < arguments.size(); i++) {
        Argument &a = arguments[i];
        pointers[2 * i] = a.buffer ? a.buffer->cpu.data() : nullptr;
        pointers[2 * i + 1] = a.buffer ? a.buffer->gpu : nullptr;
        cpu.push_back(a.buffer ? (void *)&pointers[2 * i] : a.value);
        gpu.push_back(a.buffer ? (void *)&pointers[2 * i + 1] : a.value);
    }
    const unsigned g[3] = {grid.x, grid.y, grid.z}, b[3] = {block.x, block.y, block.z};
    kernel->run(g, b, shared, cpu.data());
    OK(cudaLaunchKernel(stub, grid, block, gpu.data(), shared, nullptr));
    OK(cudaDeviceSynchronize());
    for (Argument &a : arguments) {
        if (a.buffer) {
            a.buffer->compare(name);
        }
    }
}

#define BOTH(kernel, grid, block, ...) both(#kernel, (const void *)kernel, grid, block, __VA_ARGS__)

const Buffer::Kind F = Buffer::FLOATS, W = Buffer::WORDS;

TEST(Agree, IntegerKernels) {
    Buffer x(W, 1000, 1), y(W, 1000, 2), sum(W, 2, 3);
    BOTH(fill, dim3(4), dim3(64), {x, 0xabcdu, 200});
    BOTH(iota, dim3(8), dim3(64), {y, -5, 500});
    BOTH(add_scalar, dim3(16), dim3(64), {y, 0x7fffff00, 1000});
    BOTH(chain, dim3(16), dim3(64), {x, 1664525u, 1013904223u, 1000});
    BOTH(copy_words, dim3(3), dim3(100), {x, y, 300});
    BOTH(reduce_sum, dim3(3), dim3(128), {sum, x, 1000});
    BOTH(reduce_dynamic, dim3(3), dim3(64), {sum, y, 1000}, 512);
    BOTH(checksum, dim3(2), dim3(64), {sum, x, 3997ull});
    BOTH(touch, dim3(7, 2), dim3(3, 5, 2), {x});
    BOTH(cluster_touch, dim3(4), dim3(1), {x});
}

TEST(Agree, FloatKernels) {
    Buffer x(F, 1000, 1), y(F, 1000, 2);
    BOTH(axpy, dim3(16), dim3(64), {y, x, 0.3f, 1000});
    BOTH(saxpy_n, dim3(16), dim3(64), {y, x, 0.01f, 999, 10});
    BOTH(silu_mul, dim3(16), dim3(64), {y, x, y, 900});
    BOTH(residual_add, dim3(16), dim3(64), {y, x, 1000});
}

TEST(Agree, DecoderKernels) {
    const int dim = 96, heads = 4, kv_heads = 2, head_dim = 24, max_len = 150, batch = 3;
    const int kv_dim = kv_heads * head_dim;
    Buffer table(F, 50 * dim, 1), token(W, batch, 2, 50), x(F, batch * dim, 3), w(F, dim, 4);
    Buffer q(F, batch * dim, 5), k(F, batch * kv_dim, 6), v(F, batch * kv_dim, 7);
    Buffer k_cache(F, batch * max_len * kv_dim, 8), v_cache(F, batch * max_len * kv_dim, 9);
    BOTH(embedding, dim3(1, batch), dim3(128), {x, table, token, dim});
    BOTH(rmsnorm, dim3(batch), dim3(CUS_REDUCE_BLOCK), {x, x, w, dim, 1e-5f});
    BOTH(rope, dim3(2, batch), dim3(64),
         {q, k, dim, kv_dim, heads, kv_heads, head_dim, 77, 10000.0f});
    BOTH(kv_append, dim3(1, batch), dim3(128),
         {k_cache, v_cache, k, v, kv_dim, kv_dim, kv_dim, max_len, 77});
    for (int n : {1, 64, 65, 150}) {
        int chunks = (n + CUS_ATTENTION_CHUNK - 1) / CUS_ATTENTION_CHUNK;
        Buffer partial(F, batch * heads * chunks * (head_dim + 2), 10), out(F, batch * dim, 11);
        BOTH(attention_decode, dim3(heads, chunks, batch), dim3(CUS_ATTENTION_CHUNK),
             {partial, q, k_cache, v_cache, dim, n, heads, kv_heads, head_dim, max_len, 0.2f});
        BOTH(attention_combine, dim3(heads, batch), dim3(64),
             {out, partial, dim, chunks, heads, head_dim});
    }
    Buffer logits(F, batch * 300, 12);
    BOTH(argmax, dim3(batch), dim3(CUS_REDUCE_BLOCK), {token, logits, 290, 300});
    for (int step = 0; step < 50; step++) {
        BOTH(sample, dim3(batch), dim3(CUS_REDUCE_BLOCK),
             {token, logits, 290, 300, 0.8f, 42ull, step});
    }
}

} // namespace
