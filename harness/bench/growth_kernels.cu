/* The kernel that growth launches. It is in sim/'s library of kernels, too. */
#include "kernels/chain.cu"
