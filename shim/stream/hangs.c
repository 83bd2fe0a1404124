/*
 * GPUs on which graphs are reported to hang with some driver. registry.c asks before it makes an
 * engine, with the context current. The driver is only asked for attributes.
 */
#include "shim/stream/hangs.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/stream/registry.h"

/* GPU and driver pairs on which small graphs are reported to hang (HAZARDS A27). */
static const struct {
    int major, minor;          /* compute capability */
    int from_version, version; /* as cuDriverGetVersion says; both included */
} known_hangs[] = {
    {10, 3, 13000, 13000}, /* B300, driver 580: two small graphs a step beside a copy */
};

/* Context current. False if the driver does not answer. */
static bool is_known_to_hang(void) {
    const struct cus_driver *driver = cus_process.driver;
    CUdevice device;
    int major, minor, version;
    if (!driver->cuDeviceGetAttribute || !driver->cuDriverGetVersion ||
        driver->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                     device) != CUDA_SUCCESS ||
        driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                     device) != CUDA_SUCCESS ||
        driver->cuDriverGetVersion(&version) != CUDA_SUCCESS)
        return false;
    for (size_t i = 0; i < sizeof known_hangs / sizeof known_hangs[0]; i++)
        if (major == known_hangs[i].major && minor == known_hangs[i].minor &&
            version >= known_hangs[i].from_version && version <= known_hangs[i].version)
            return true;
    return false;
}

/* Asked once per context, and again after a context died whose address another context may have
 * now. */
bool cus_graphs_hang(struct cus_context *context) {
    enum { UNKNOWN, NO, YES };
    int known = __atomic_load_n(&context->hangs, __ATOMIC_RELAXED);
    if (known == UNKNOWN) {
        known = is_known_to_hang() ? YES : NO;
        __atomic_store_n(&context->hangs, known, __ATOMIC_RELAXED);
    }
    if (known == YES)
        CUS_LOG_ONCE(
            CUS_WARN, "stream",
            "nothing is deferred on this GPU: with this driver graphs are reported to hang "
            "there (trust_driver = yes to try)");
    return known == YES;
}
