/*
 * Streams and events of the libcudart stand-in. Handles are the driver's own. Any thread, no lock,
 * no state.
 */
#include "harness/sim/rt/rt.h"

RT_FUNCTION(cudaStreamCreate, (cudaStream_t * stream), RT_CALL(d, cuStreamCreate, stream, 0))
RT_FUNCTION(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags),
            RT_CALL(d, cuStreamCreate, stream, flags))
RT_FUNCTION(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
            RT_CALL(d, cuStreamCreateWithPriority, stream, flags, priority))
RT_FUNCTION(cudaStreamDestroy, (cudaStream_t stream), RT_CALL(d, cuStreamDestroy, stream))
RT_STREAM_FUNCTION(cudaStreamGetPriority, (cudaStream_t stream, int *priority),
                   RT_CALL(d, cuStreamGetPriority, stream, priority))
RT_STREAM_FUNCTION(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags),
                   RT_CALL(d, cuStreamGetFlags, stream, flags))
RT_STREAM_FUNCTION(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id),
                   RT_CALL(d, cuStreamGetId, stream, id))
RT_STREAM_FUNCTION(cudaStreamSynchronize, (cudaStream_t stream),
                   RT_CALL(d, cuStreamSynchronize, stream))
RT_STREAM_FUNCTION(cudaStreamQuery, (cudaStream_t stream), RT_CALL(d, cuStreamQuery, stream))
RT_STREAM_FUNCTION(cudaStreamWaitEvent,
                   (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
                   RT_CALL(d, cuStreamWaitEvent, stream, event, flags))
RT_STREAM_FUNCTION(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from),
                   RT_CALL(d, cuStreamCopyAttributes, to, from))
RT_STREAM_FUNCTION(cudaStreamGetAttribute,
                   (cudaStream_t stream, cudaStreamAttrID which, cudaStreamAttrValue *value),
                   RT_CALL(d, cuStreamGetAttribute, stream, (CUstreamAttrID)which,
                           (CUstreamAttrValue *)value))
RT_STREAM_FUNCTION(cudaStreamSetAttribute,
                   (cudaStream_t stream, cudaStreamAttrID which, const cudaStreamAttrValue *value),
                   RT_CALL(d, cuStreamSetAttribute, stream, (CUstreamAttrID)which,
                           (const CUstreamAttrValue *)value))
RT_STREAM_FUNCTION(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *data),
                   RT_CALL(d, cuLaunchHostFunc, stream, fn, data))
/* The callback's status is a CUresult with the same number. */
RT_STREAM_FUNCTION(cudaStreamAddCallback,
                   (cudaStream_t stream, cudaStreamCallback_t fn, void *data, unsigned int flags),
                   RT_CALL(d, cuStreamAddCallback, stream, (CUstreamCallback)fn, data, flags))

RT_FUNCTION(cudaEventCreate, (cudaEvent_t * event), RT_CALL(d, cuEventCreate, event, 0))
RT_FUNCTION(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags),
            RT_CALL(d, cuEventCreate, event, flags))
RT_FUNCTION(cudaEventDestroy, (cudaEvent_t event), RT_CALL(d, cuEventDestroy, event))
RT_FUNCTION(cudaEventQuery, (cudaEvent_t event), RT_CALL(d, cuEventQuery, event))
RT_FUNCTION(cudaEventSynchronize, (cudaEvent_t event), RT_CALL(d, cuEventSynchronize, event))
RT_FUNCTION(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
            RT_CALL(d, cuEventElapsedTime, ms, start, end))
RT_STREAM_FUNCTION(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
                   RT_CALL(d, cuEventRecord, event, stream))
RT_STREAM_FUNCTION(cudaEventRecordWithFlags,
                   (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
                   RT_CALL(d, cuEventRecordWithFlags, event, stream, flags))
