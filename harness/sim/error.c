/* Names and texts of results. Any thread; constant. */
#include "harness/sim/cusim.h"

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define E(code, text)                                                                              \
    { code, #code, text }
    E(CUDA_SUCCESS, "no error"),
    E(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    E(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    E(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    E(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    E(CUDA_ERROR_STUB_LIBRARY, "stub library"),
    E(CUDA_ERROR_NO_DEVICE, "no device"),
    E(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    E(CUDA_ERROR_INVALID_IMAGE, "invalid kernel image"),
    E(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    E(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit not supported"),
    E(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access not supported"),
    E(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "execution affinity not supported"),
    E(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    E(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    E(CUDA_ERROR_ILLEGAL_STATE, "illegal state"),
    E(CUDA_ERROR_LOSSY_QUERY, "query would drop data"),
    E(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    E(CUDA_ERROR_NOT_READY, "device not ready"),
    E(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal memory access"),
    E(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    E(CUDA_ERROR_LAUNCH_TIMEOUT, "launch timed out"),
    E(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context already active"),
    E(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    E(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory already registered"),
    E(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "memory not registered"),
    E(CUDA_ERROR_LAUNCH_FAILED, "launch failure"),
    E(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    E(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    E(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    E(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream captures"),
    E(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "capture invalidated by an earlier error"),
    E(CUDA_ERROR_STREAM_CAPTURE_MERGE, "would merge two captures"),
    E(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not begun in this stream"),
    E(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a forked stream was not joined"),
    E(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency across the border of a capture"),
    E(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "implicit dependency on a capturing stream"),
    E(CUDA_ERROR_CAPTURED_EVENT, "event was last recorded in a capturing stream"),
    E(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture was begun by another thread"),
    E(CUDA_ERROR_TIMEOUT, "timed out"),
    E(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "graph update would violate constraints"),
    E(CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
    E(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef E
};

CUresult cuGetErrorName(CUresult error, const char **text) {
    CUSIM_ENTER_EARLY(cuGetErrorName);
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == error)
            *text = errors[i].name;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    CUSIM_ENTER_EARLY(cuGetErrorString);
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == error)
            *text = errors[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
