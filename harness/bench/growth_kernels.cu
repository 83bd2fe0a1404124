/* The kernel that growth launches. The simulator's kernel library contains it too. */
#include "kernels/chain.cu"
