/*
 * sample for rows of any sequences at any positions. Row r draws with the noise of sample's row
 * seq[r] at step pos[r] (both on the device), so a sequence draws the same in every batch. All
 * else, the grid too, is as in sample.
 */
#include "kernels/decoder_row.h"

extern "C" __global__ void sample_rows(int *token, const float *logits, int vocab, int stride,
                                       float temperature, unsigned long long seed, const int *seq,
                                       const int *pos) {
    size_t row = blockIdx.x;
    cus_sample_one(token + row, logits + row * stride, vocab, temperature, seed, pos[row],
                   seq[row]);
}

CUS_KERNEL_SYNC(sample_rows)
