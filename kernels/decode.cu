/*
 * The decoder's kernels as one translation unit, for one image: //kernels:decode_fatbin. A host
 * that launches with <<<>>> compiles the single files instead.
 */
#include "kernels/argmax.cu"
#include "kernels/attention_combine.cu"
#include "kernels/attention_decode.cu"
#include "kernels/attention_rows.cu"
#include "kernels/embedding.cu"
#include "kernels/kv_append.cu"
#include "kernels/kv_append_rows.cu"
#include "kernels/residual_add.cu"
#include "kernels/rmsnorm.cu"
#include "kernels/rope.cu"
#include "kernels/rope_rows.cu"
#include "kernels/sample.cu"
#include "kernels/sample_rows.cu"
#include "kernels/silu_mul.cu"
