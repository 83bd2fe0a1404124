/*
 * All micro kernels as one translation unit, for one image: //kernels:micro_fatbin. Programs load
 * it by cuModuleLoadData or cuLibraryLoadData.
 */
#include "kernels/add_scalar.cu"
#include "kernels/axpy.cu"
#include "kernels/big_params.cu"
#include "kernels/chain.cu"
#include "kernels/checksum.cu"
#include "kernels/cluster_touch.cu"
#include "kernels/copy_words.cu"
#include "kernels/fill.cu"
#include "kernels/iota.cu"
#include "kernels/join_words.cu"
#include "kernels/many_params.cu"
#include "kernels/overlap.cu"
#include "kernels/reduce_dynamic.cu"
#include "kernels/reduce_sum.cu"
#include "kernels/saxpy_n.cu"
#include "kernels/set_flag.cu"
#include "kernels/spin_until.cu"
#include "kernels/stamp.cu"
#include "kernels/touch.cu"
#include "kernels/trap.cu"
