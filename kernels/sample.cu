/*
 * Draws token[b] from softmax(logits[b] / temperature): adds Gumbel noise to each scaled logit and
 * takes the largest. This needs no sum and no order. The noise is a function of (seed, step, row,
 * index) alone, so the same call draws the same token. logits are [batch] rows of vocab, stride
 * apart; temperature is above 0. Grid (batch), block CUS_REDUCE_BLOCK.
 */
#include "kernels/decoder_row.h"

extern "C" __global__ void sample(int *token, const float *logits, int vocab, int stride,
                                  float temperature, unsigned long long seed, int step) {
    size_t row = blockIdx.x;
    cus_sample_one(token + row, logits + row * stride, vocab, temperature, seed, step, (int)row);
}

CUS_KERNEL_SYNC(sample)
