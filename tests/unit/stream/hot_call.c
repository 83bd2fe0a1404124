#include "tests/unit/stream/hot_call.h"

#include "shim/stream/hot.h"

bool hot_launch(CUfunction f, const uint32_t *dims, CUstream handle, enum cus_abi abi,
                void **params) {
    struct cus_dims shape;
    memcpy(shape.d, dims, sizeof shape.d);
    return cus_hot_launch(f, shape, handle, abi, params);
}

bool hot_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi, void **params) {
    return cus_hot_launch_ex(config, f, abi, params);
}
