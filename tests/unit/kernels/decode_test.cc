// Promise: the decoder's kernels agree with plain loops over doubles: odd shapes, strides, grouped
// heads, several chunks.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernels.h"
#include "tests/unit/kernels/run.h"

namespace {

using Floats = std::vector<float>;

Floats noise(size_t count, unsigned seed) {
    Floats v(count);
    unsigned s = seed * 747796405u + 1;
    for (float &f : v) {
        s = s * 1664525u + 1013904223u;
        f = (float)(s >> 8) / (1 << 23) - 1.0f;
    }
    return v;
}

unsigned parts(int n, int of) {
    return (unsigned)((n + of - 1) / of);
}

TEST(Decode, EmbeddingLooksRowsUp) {
    const int dim = 70, vocab = 5;
    Floats table = noise(vocab * dim, 1), x(3 * dim, 0);
    std::vector<int> token = {4, 0, 2};
    run("embedding", {parts(dim, 32), 3}, {32}, 0, x.data(), (const float *)table.data(),
        (const int *)token.data(), dim);
    for (int b = 0; b < 3; b++) {
        for (int i = 0; i < dim; i++) {
            ASSERT_EQ(x[b * dim + i], table[token[b] * dim + i]);
        }
    }
}

TEST(Decode, RmsnormMatchesAndWorksInPlace) {
    for (int dim : {1, 127, 128, 300}) {
        Floats x = noise(2 * dim, 2), w = noise(dim, 3), y(2 * dim, 0);
        run("rmsnorm", {2}, {CUS_REDUCE_BLOCK}, 0, y.data(), (const float *)x.data(),
            (const float *)w.data(), dim, 1e-5f);
        for (int b = 0; b < 2; b++) {
            double sum = 0;
            for (int i = 0; i < dim; i++) {
                sum += (double)x[b * dim + i] * x[b * dim + i];
            }
            for (int i = 0; i < dim; i++) {
                double right = x[b * dim + i] / std::sqrt(sum / dim + 1e-5) * w[i];
                ASSERT_NEAR(y[b * dim + i], right, 1e-5) << dim;
            }
        }
        run("rmsnorm", {2}, {CUS_REDUCE_BLOCK}, 0, x.data(), (const float *)x.data(),
            (const float *)w.data(), dim, 1e-5f);
        EXPECT_EQ(x, y);
    }
}

TEST(Decode, RopeTurnsNeighboursByPosition) {
    const int heads = 3, kv_heads = 1, dim = 8, pos = 11, stride = 40;
    Floats q = noise(2 * stride, 4), k = noise(2 * stride, 5), q0 = q, k0 = k;
    run("rope", {parts((heads + kv_heads) * dim / 2, 64), 2}, {64}, 0, q.data(), k.data(), stride,
        stride, heads, kv_heads, dim, pos, 10000.0f);
    auto check = [&](const Floats &now, const Floats &before, int n_heads) {
        for (int b = 0; b < 2; b++) {
            for (int i = 0; i < n_heads * dim; i += 2) {
                size_t at = (size_t)(b * stride + i);
                double angle = pos * std::pow(10000.0, -(double)(i % dim) / dim);
                ASSERT_NEAR(now[at],
                            before[at] * std::cos(angle) - before[at + 1] * std::sin(angle), 1e-5);
                ASSERT_NEAR(now[at + 1],
                            before[at] * std::sin(angle) + before[at + 1] * std::cos(angle), 1e-5);
            }
            EXPECT_EQ(now[b * stride + n_heads * dim], before[b * stride + n_heads * dim]);
        }
    };
    check(q, q0, heads);
    check(k, k0, kv_heads);
}

TEST(Decode, KvAppendWritesOnePosition) {
    const int kv_dim = 20, max_len = 6, pos = 4;
    Floats k = noise(2 * 30, 6), v = noise(2 * 25, 7), kc(2 * max_len * kv_dim, 9.0f), vc = kc;
    run("kv_append", {parts(kv_dim, 16), 2}, {16}, 0, kc.data(), vc.data(), (const float *)k.data(),
        (const float *)v.data(), 30, 25, kv_dim, max_len, pos);
    for (int b = 0; b < 2; b++) {
        for (int p = 0; p < max_len; p++) {
            for (int i = 0; i < kv_dim; i++) {
                size_t at = (size_t)((b * max_len + p) * kv_dim + i);
                ASSERT_EQ(kc[at], p == pos ? k[b * 30 + i] : 9.0f);
                ASSERT_EQ(vc[at], p == pos ? v[b * 25 + i] : 9.0f);
            }
        }
    }
}

TEST(Decode, AttentionMatchesSoftmaxForEveryLength) {
    const int heads = 4, kv_heads = 2, dim = 72, max_len = 200, batch = 2;
    const int kv_dim = kv_heads * dim, q_stride = heads * dim + 3;
    const float scale = 1.0f / std::sqrt((float)dim);
    Floats q = noise(batch * q_stride, 8), k = noise((size_t)batch * max_len * kv_dim, 9),
           v = noise((size_t)batch * max_len * kv_dim, 10);
    for (float &f : q) {
        f *= 20; /* sharp weights, so that a wrong maximum or a lost chunk shows */
    }
    for (int n : {1, 63, 64, 65, 150, 200}) {
        unsigned chunks = parts(n, CUS_ATTENTION_CHUNK);
        Floats partial((size_t)batch * heads * chunks * (dim + 2), NAN), out(batch * heads * dim);
        run("attention_decode", {heads, chunks, batch}, {CUS_ATTENTION_CHUNK}, 0, partial.data(),
            (const float *)q.data(), (const float *)k.data(), (const float *)v.data(), q_stride, n,
            heads, kv_heads, dim, max_len, scale);
        run("attention_combine", {heads, batch}, {64}, 0, out.data(), (const float *)partial.data(),
            heads * dim, (int)chunks, heads, dim);
        for (int b = 0; b < batch; b++) {
            for (int h = 0; h < heads; h++) {
                const float *query = &q[b * q_stride + h * dim];
                size_t cache = (size_t)b * max_len * kv_dim + h / (heads / kv_heads) * dim;
                std::vector<double> w(n);
                double sum = 0;
                for (int p = 0; p < n; p++) {
                    double dot = 0;
                    for (int d = 0; d < dim; d++) {
                        dot += (double)query[d] * k[cache + (size_t)p * kv_dim + d];
                    }
                    sum += w[p] = std::exp(dot * scale);
                }
                for (int d = 0; d < dim; d++) {
                    double right = 0;
                    for (int p = 0; p < n; p++) {
                        right += w[p] / sum * v[cache + (size_t)p * kv_dim + d];
                    }
                    ASSERT_NEAR(out[(b * heads + h) * dim + d], right, 2e-4) << n << " " << h;
                }
            }
        }
    }
}

// Rows of three sequences at positions of their own, two of which have several: each must get what
// the kernels for a batch in step give it, to the last bit.
struct OutOfStep {
    static constexpr int n = 7, sequences = 3, max_len = 200;
    const std::vector<int> seq = {2, 0, 0, 0, 1, 1, 2}, pos = {5, 62, 63, 64, 0, 1, 199};
};

TEST(Decode, RopeRowsIsRopeAtEachRowsPosition) {
    const OutOfStep rows;
    const int heads = 3, kv_heads = 1, dim = 8, stride = 40;
    Floats q = noise(rows.n * stride, 4), k = noise(rows.n * stride, 5), q1 = q, k1 = k;
    unsigned x = parts((heads + kv_heads) * dim / 2, 64);
    run("rope_rows", {x, rows.n}, {64}, 0, q.data(), k.data(), stride, stride, heads, kv_heads, dim,
        rows.pos.data(), 10000.0f);
    for (int r = 0; r < rows.n; r++) {
        run("rope", {x, 1}, {64}, 0, &q1[r * stride], &k1[r * stride], stride, stride, heads,
            kv_heads, dim, rows.pos[r], 10000.0f);
    }
    EXPECT_EQ(q, q1);
    EXPECT_EQ(k, k1);
}

TEST(Decode, KvAppendRowsWritesEachRowsPlaceAlone) {
    const OutOfStep rows;
    const int kv_dim = 20;
    Floats k = noise(rows.n * 30, 6), v = noise(rows.n * 25, 7);
    Floats kc((size_t)rows.sequences * rows.max_len * kv_dim, 9.0f), vc = kc, kc1 = kc, vc1 = kc;
    run("kv_append_rows", {parts(kv_dim, 16), rows.n}, {16}, 0, kc.data(), vc.data(),
        (const float *)k.data(), (const float *)v.data(), 30, 25, kv_dim, rows.max_len,
        rows.seq.data(), rows.pos.data());
    for (int r = 0; r < rows.n; r++) {
        size_t at = (size_t)(rows.seq[r] * rows.max_len + rows.pos[r]) * kv_dim;
        std::copy_n(&k[r * 30], kv_dim, &kc1[at]);
        std::copy_n(&v[r * 25], kv_dim, &vc1[at]);
    }
    EXPECT_EQ(kc, kc1);
    EXPECT_EQ(vc, vc1);
}

TEST(Decode, AttentionRowsIsAttentionDecodeOfEachRow) {
    const OutOfStep rows;
    const int heads = 4, kv_heads = 2, dim = 72, kv_dim = kv_heads * dim;
    const int q_stride = heads * dim + 3;
    const float scale = 1.0f / std::sqrt((float)dim);
    size_t cache = (size_t)rows.sequences * rows.max_len * kv_dim;
    Floats q = noise(rows.n * q_stride, 8), k = noise(cache, 9), v = noise(cache, 10);
    for (int context : {rows.max_len, 100, 64, 1}) {
        unsigned chunks = parts(std::min(context, 200), CUS_ATTENTION_CHUNK);
        Floats partial((size_t)rows.n * heads * chunks * (dim + 2), NAN);
        Floats out(rows.n * heads * dim), right = out;
        run("attention_rows", {heads, chunks, rows.n}, {CUS_ATTENTION_CHUNK}, 0, partial.data(),
            (const float *)q.data(), (const float *)k.data(), (const float *)v.data(),
            rows.seq.data(), rows.pos.data(), context, q_stride, heads, kv_heads, dim, rows.max_len,
            scale);
        run("attention_combine", {heads, rows.n}, {64}, 0, out.data(),
            (const float *)partial.data(), heads * dim, (int)chunks, heads, dim);
        for (int r = 0; r < rows.n; r++) {
            int n = std::min(rows.pos[r] + 1, context);
            unsigned own = parts(n, CUS_ATTENTION_CHUNK);
            size_t oldest = (size_t)(rows.seq[r] * rows.max_len + rows.pos[r] + 1 - n) * kv_dim;
            run("attention_decode", {heads, own, 1}, {CUS_ATTENTION_CHUNK}, 0, partial.data(),
                (const float *)&q[r * q_stride], (const float *)&k[oldest],
                (const float *)&v[oldest], q_stride, n, heads, kv_heads, dim, rows.max_len, scale);
            run("attention_combine", {heads, 1}, {64}, 0, &right[r * heads * dim],
                (const float *)partial.data(), heads * dim, (int)own, heads, dim);
        }
        EXPECT_EQ(out, right) << context;
    }
}

TEST(Decode, GateAndResidual) {
    Floats gate = noise(100, 11), up = noise(100, 12), out(101, 5.0f);
    run("silu_mul", {4}, {32}, 0, out.data(), (const float *)gate.data(), (const float *)up.data(),
        100);
    for (int i = 0; i < 100; i++) {
        ASSERT_NEAR(out[i], gate[i] / (1 + std::exp(-(double)gate[i])) * up[i], 1e-6);
    }
    EXPECT_EQ(out[100], 5.0f);
    Floats sum = up;
    run("residual_add", {4}, {32}, 0, sum.data(), (const float *)gate.data(), 100);
    for (int i = 0; i < 100; i++) {
        ASSERT_EQ(sum[i], up[i] + gate[i]);
    }
}

TEST(Decode, ArgmaxTakesTheLowestOfEquals) {
    for (int vocab : {1, 5, 128, 1000}) {
        const int stride = vocab + 7;
        Floats logits = noise(2 * stride, 13);
        std::fill(logits.begin() + vocab, logits.begin() + stride, 100.0f);
        if (vocab > 400) {
            logits[400] = logits[300] = 2.0f;
        }
        std::vector<int> token(2, -1);
        run("argmax", {2}, {CUS_REDUCE_BLOCK}, 0, token.data(), (const float *)logits.data(), vocab,
            stride);
        for (int b = 0; b < 2; b++) {
            auto row = logits.begin() + b * stride;
            EXPECT_EQ(token[b], std::max_element(row, row + vocab) - row) << vocab;
        }
    }
}

TEST(Decode, SampleFollowsTheSoftmaxAndItsSeed) {
    const int vocab = 4, draws = 20000;
    Floats logits = {0.0f, 1.0f, 2.0f, -1.0f};
    auto draw = [&](unsigned long long seed, int step, float temperature) {
        int token = -1;
        run("sample", {1}, {CUS_REDUCE_BLOCK}, 0, &token, (const float *)logits.data(), vocab,
            vocab, temperature, seed, step);
        return token;
    };
    double sum = 0, count[vocab] = {};
    for (float f : logits) {
        sum += std::exp(f / 0.8);
    }
    int differ = 0;
    for (int i = 0; i < draws; i++) {
        int token = draw(42, i, 0.8f);
        ASSERT_GE(token, 0);
        ASSERT_LT(token, vocab);
        count[token]++;
        if (i < 200) {
            EXPECT_EQ(token, draw(42, i, 0.8f));
            differ += token != draw(43, i, 0.8f);
        }
    }
    for (int t = 0; t < vocab; t++) {
        EXPECT_NEAR(count[t] / draws, std::exp(logits[t] / 0.8) / sum, 0.02) << t;
    }
    EXPECT_GT(differ, 20);
    EXPECT_EQ(draw(7, 0, 1e-3f), 2);
}

TEST(Decode, SampleRowsDrawsAsTheSequenceWouldInStep) {
    const OutOfStep rows;
    const int vocab = 96, stride = 100;
    Floats logits = noise(rows.n * stride, 14);
    int differ = 0;
    for (unsigned long long seed = 1; seed < 20; seed++) {
        std::vector<int> token(rows.n, -1);
        run("sample_rows", {rows.n}, {CUS_REDUCE_BLOCK}, 0, token.data(),
            (const float *)logits.data(), vocab, stride, 0.8f, seed, rows.seq.data(),
            rows.pos.data());
        for (int r = 0; r < rows.n; r++) {
            // The same logits in the row of the sequence, at the row's step.
            Floats in_step((size_t)rows.sequences * stride);
            std::copy_n(&logits[r * stride], stride, &in_step[rows.seq[r] * stride]);
            std::vector<int> right(rows.sequences, -1);
            run("sample", {rows.sequences}, {CUS_REDUCE_BLOCK}, 0, right.data(),
                (const float *)in_step.data(), vocab, stride, 0.8f, seed, rows.pos[r]);
            EXPECT_EQ(token[r], right[rows.seq[r]]) << seed << " " << r;
            differ += token[r] != token[0];
        }
    }
    EXPECT_GT(differ, 50);
}

} // namespace
