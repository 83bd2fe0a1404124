#include "tests/unit/stream/events.h"

#include <thread>

#include "shim/api/api.h"

namespace fake {
namespace {

constexpr uintptr_t kEvents = 0xe0000, kOwn = 0xf0000;
uintptr_t own;

CUfunction RecordFunction() {
    static CUfunction f = MakeFunction("record");
    return f;
}

CUfunction WaitFunction() {
    static CUfunction f = MakeFunction("wait");
    return f;
}

CUresult SetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    driver().calls["cuGraphExecEventRecordNodeSetEvent"]++;
    if (CUresult failed = driver().fail("cuGraphExecEventRecordNodeSetEvent"))
        return failed;
    uint64_t a = reinterpret_cast<uintptr_t>(event);
    uint32_t b = 0;
    void *params[2] = {&a, &b};
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    kernel.func = RecordFunction();
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY =
        kernel.blockDimZ = 1;
    kernel.kernelParams = params;
    return driver().table.cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
}

} // namespace

CUevent Event(uintptr_t number) {
    return reinterpret_cast<CUevent>(kEvents + number);
}

uintptr_t OwnEvents() {
    return own;
}

CUevent OwnEvent(uintptr_t number) {
    return reinterpret_cast<CUevent>(kOwn + number);
}

CUresult RealRecord(CUevent event, CUstream stream) {
    if (CUresult failed = driver().fail("cuEventRecord"))
        return failed;
    return AsLaunch(RecordFunction(), 1, reinterpret_cast<uintptr_t>(event), 0, stream);
}

CUresult RealRecordWithFlags(CUevent event, CUstream stream, unsigned) {
    if (CUresult failed = driver().fail("cuEventRecordWithFlags"))
        return failed;
    return AsLaunch(RecordFunction(), 1, reinterpret_cast<uintptr_t>(event), 0, stream);
}

CUresult RealWait(CUstream stream, CUevent event, unsigned) {
    if (CUresult failed = driver().fail("cuStreamWaitEvent"))
        return failed;
    return AsLaunch(WaitFunction(), 1, reinterpret_cast<uintptr_t>(event), 0, stream);
}

void TableOfEvents() {
    driver().table.cuEventRecord = RealRecord;
    driver().table.cuEventRecordWithFlags = RealRecordWithFlags;
    driver().table.cuGraphExecEventRecordNodeSetEvent = SetEvent;
}

void TableOfBranches() {
    TableOfEvents();
    driver().table.cuStreamWaitEvent = RealWait;
    driver().table.cuEventCreate = [](CUevent *event, unsigned flags) {
        if (CUresult failed = driver().fail("cuEventCreate"))
            return failed;
        *event = OwnEvent(own++);
        return flags == CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    driver().table.cuEventDestroy_v2 = [](CUevent) {
        driver().calls["cuEventDestroy_v2"]++;
        return CUDA_SUCCESS;
    };
}

std::string RecordLine(CUevent event, CUstream stream) {
    return Line(stream, "record", reinterpret_cast<uintptr_t>(event));
}

std::string WaitLine(CUevent event, CUstream stream) {
    return Line(stream, "wait", reinterpret_cast<uintptr_t>(event));
}

CUresult RecordOn(CUstream stream, CUevent event, unsigned flags, bool with_flags) {
    unsigned row = with_flags ? CUS_ROW_cuEventRecordWithFlags : CUS_ROW_cuEventRecord;
    cus_record record = {};
    record.stream = {stream, CUS_ABI_LEGACY};
    record.event = event;
    record.with_flags = with_flags;
    record.real = with_flags ? reinterpret_cast<void *>(RealRecordWithFlags)
                             : reinterpret_cast<void *>(RealRecord);
    if (cus_engine_record_begins(&record, flags, row))
        return cus_engine_record(&record);
    cus_engine_flush_event(&record.stream, flags ? nullptr : event, row);
    CUresult result =
        with_flags ? RealRecordWithFlags(event, stream, flags) : RealRecord(event, stream);
    if (result == CUDA_SUCCESS)
        cus_engine_recorded(&record);
    return result;
}

CUresult WaitOn(CUstream stream, CUevent event, unsigned flags) {
    cus_wait wait = {};
    wait.stream = {stream, CUS_ABI_LEGACY};
    wait.event = event;
    wait.real = reinterpret_cast<void *>(RealWait);
    wait.row = CUS_ROW_cuStreamWaitEvent;
    CUresult result;
    if (!flags && cus_engine_wait(&wait, &result))
        return result;
    cus_engine_flush_event(&wait.stream, flags ? nullptr : event, wait.row);
    if (flags)
        cus_engine_event_named(event, wait.row);
    else
        cus_engine_event_seen(event, wait.row);
    result = RealWait(stream, event, flags);
    if (!flags && result == CUDA_SUCCESS)
        cus_engine_waited(&wait);
    return result;
}

void Elsewhere(const std::function<void()> &call) {
    std::thread(call).join();
}

} // namespace fake
