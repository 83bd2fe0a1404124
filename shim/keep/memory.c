/*
 * The program's device memory, in one reserved range of addresses. Physical chunks are mapped one
 * behind another from the start of the range, zeroed, and stay until the process ends. So memory
 * that is handed out twice holds the same in a replay as here, and a replay need not allocate or
 * free. Blocks, in use or free, cover the chunks without a gap, in the order of their addresses.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/keep/inner.h"
#include "shim/trace/file.h"

#include "shim/base/forbid.h"

enum {
    ALIGN = 512, /* alignment of what cuMemAlloc gives, and of pitches */
    CHUNK = 4 << 20,
    GRAIN = 64 << 10, /* zeros are left out in units of this size */
};

/* Where the range may begin. These addresses were free in every process that was examined, also
 * under sanitizers, and the driver honoured them. */
static const uint64_t bases[] = {0x200000000000, 0x400000000000, 0x600000000000};
static const uint64_t sizes[] = {1ull << 40, 1ull << 38, 1ull << 36, 1ull << 34};

struct block {
    uint64_t address, bytes;
    bool used;
    struct block *next;
};

static struct {
    uint64_t base, bytes; /* 0: nothing is reserved yet */
    uint64_t end;         /* end of what is mapped */
    size_t granularity;
    struct block *blocks; /* by address */
    CUstream stream;      /* this file's own, for zeroing and reading */
    CUmemAllocationProp place;
} arena;

/* Memory outside the arena. */
struct span {
    uint64_t address, bytes;
    enum cst_span_what what;
    struct span *next;
};
static struct span *spans;

static void tell_span(enum cst_span_what what, uint64_t address, uint64_t bytes, uint32_t module,
                      const char *name, bool gone) {
    struct cst_span span = {
        .head = {.type = CST_SPAN, .words = sizeof span / 8},
        .what = what,
        .module = module,
        .name = cus_record_string(name),
        .gone = gone,
        .address = address,
        .bytes = bytes,
    };
    cus_record_define(&span.head);
}

void cus_keep_span(enum cst_span_what what, uint64_t address, uint64_t bytes, uint32_t module,
                   const char *name) {
    struct span *span;
    cus_lock_take(&cus_keep_lock);
    for (span = spans; span; span = span->next)
        if (span->address == address && span->bytes == bytes && span->what == what)
            break;
    bool known = span != NULL;
    if (!known && (span = cus_mem_alloc(sizeof *span))) {
        *span = (struct span){address, bytes, what, spans};
        spans = span;
    }
    cus_lock_give(&cus_keep_lock);
    if (!span)
        cus_record_give_up("no memory");
    else if (!known)
        tell_span(what, address, bytes, module, name, false);
}

static void span_gone(uint64_t address) {
    struct span gone = {0};
    cus_lock_take(&cus_keep_lock);
    for (struct span **at = &spans; *at; at = &(*at)->next)
        if ((*at)->address == address && (*at)->what != CST_SPAN_GLOBAL) {
            struct span *span = *at;
            gone = *span;
            *at = span->next;
            cus_mem_free(span);
            break;
        }
    cus_lock_give(&cus_keep_lock);
    if (gone.bytes)
        tell_span(gone.what, gone.address, gone.bytes, 0, NULL, true);
}

static bool in_arena(uint64_t address) {
    return arena.bytes && address - arena.base < arena.bytes;
}

enum cus_keep_place_of cus_keep_where(uint64_t address) {
    CUmemorytype type = 0;
    enum cus_keep_place_of where = CUS_KEEP_ELSEWHERE;
    if (in_arena(address))
        return CUS_KEEP_DEVICE;
    cus_lock_take(&cus_keep_lock);
    struct span *span = spans;
    while (span && address - span->address >= span->bytes)
        span = span->next;
    enum cst_span_what what = span ? span->what : 0;
    cus_lock_give(&cus_keep_lock);
    if (what == CST_SPAN_GLOBAL)
        where = CUS_KEEP_DEVICE;
    else if (what == CST_SPAN_HOST)
        where = CUS_KEEP_HOST;
    else if (!what && (cus_keep_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                           address) != CUDA_SUCCESS ||
                       type == CU_MEMORYTYPE_HOST))
        where = CUS_KEEP_HOST;
    return where;
}

/* ---- the arena; lock held ---- */

static bool reserve(void) {
    CUdevice device = 0;
    if (cus_keep_real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return false;
    arena.place = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    if (cus_keep_real.cuMemGetAllocationGranularity(
            &arena.granularity, &arena.place, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        !arena.granularity ||
        cus_keep_real.cuStreamCreate(&arena.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return false;
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (unsigned b = 0; b < sizeof bases / sizeof *bases; b++) {
            CUdeviceptr got = 0;
            /* The driver may return another address than the requested one. That does here, but
             * a replay will hardly get the same one. */
            if (cus_keep_real.cuMemAddressReserve(&got, sizes[s], 0, bases[b], 0) == CUDA_SUCCESS) {
                arena.base = arena.end = got;
                arena.bytes = sizes[s];
                tell_span(CST_SPAN_RESERVED, got, sizes[s], 0, NULL, false);
                return true;
            }
        }
    return false;
}

static struct block *add_block(struct block *behind, uint64_t address, uint64_t bytes) {
    struct block *block = cus_mem_alloc(sizeof *block);
    if (!block)
        return NULL;
    *block = (struct block){.address = address, .bytes = bytes};
    struct block **at = behind ? &behind->next : &arena.blocks;
    block->next = *at;
    *at = block;
    return block;
}

/* Maps more memory at the end of the arena. */
static CUresult grow(uint64_t bytes, struct block **made) {
    CUmemGenericAllocationHandle handle;
    uint64_t grain = arena.granularity;
    bytes = (bytes + grain - 1) / grain * grain;
    struct block *last = arena.blocks;
    while (last && last->next)
        last = last->next;
    if (arena.end + bytes > arena.base + arena.bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = cus_keep_real.cuMemCreate(&handle, bytes, &arena.place, 0);
    if (result != CUDA_SUCCESS)
        return result;
    CUmemAccessDesc access = {.location = arena.place.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    result = cus_keep_real.cuMemMap(arena.end, bytes, 0, handle, 0);
    cus_keep_real.cuMemRelease(handle); /* the memory lives as long as it is mapped */
    if (result == CUDA_SUCCESS)
        result = cus_keep_real.cuMemSetAccess(arena.end, bytes, &access, 1);
    if (result == CUDA_SUCCESS)
        result = cus_keep_real.cuMemsetD8Async(arena.end, 0, bytes, arena.stream);
    if (result == CUDA_SUCCESS)
        result = cus_keep_real.cuStreamSynchronize(arena.stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!(*made = add_block(last, arena.end, bytes)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    tell_span(CST_SPAN_DEVICE, arena.end, bytes, 0, NULL, false);
    arena.end += bytes;
    return CUDA_SUCCESS;
}

/* The smallest free block that is large enough. */
static struct block *find_free(uint64_t bytes) {
    struct block *best = NULL;
    for (struct block *block = arena.blocks; block; block = block->next)
        if (!block->used && block->bytes >= bytes && (!best || block->bytes < best->bytes))
            best = block;
    return best;
}

static CUresult take(uint64_t bytes, CUdeviceptr *address) {
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    struct block *block = find_free(bytes);
    CUresult result = block ? CUDA_SUCCESS : grow(bytes, &block);
    if (result != CUDA_SUCCESS)
        return result;
    if (block->bytes > bytes) {
        if (!add_block(block, block->address + bytes, block->bytes - bytes))
            return CUDA_ERROR_OUT_OF_MEMORY;
        block->bytes = bytes;
    }
    block->used = true;
    *address = block->address;
    return CUDA_SUCCESS;
}

static bool give(uint64_t address) {
    struct block *before = NULL, *block = arena.blocks;
    while (block && block->address != address) {
        before = block;
        block = block->next;
    }
    if (!block || !block->used)
        return false;
    block->used = false;
    struct block *next = block->next;
    if (next && !next->used) {
        block->bytes += next->bytes;
        block->next = next->next;
        cus_mem_free(next);
    }
    if (before && !before->used) {
        before->bytes += block->bytes;
        before->next = block->next;
        cus_mem_free(block);
    }
    return true;
}

/* ---- replacements of the driver's functions ---- */

/* True: the allocation goes into the arena: it is the program's, in the one kept context. */
static bool keeps(const void *out, size_t bytes) {
    return out && bytes && bytes <= 1ull << 40 && cus_keeping() && cus_keep_context();
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, bool *kept) {
    cus_lock_take(&cus_keep_lock);
    *kept = arena.bytes || reserve();
    CUresult result = *kept ? take(bytes, address) : CUDA_SUCCESS;
    cus_lock_give(&cus_keep_lock);
    if (!*kept)
        cus_keep_cannot("cuMemAddressReserve", "no range of addresses could be reserved");
    return result;
}

static void foreign(CUresult result, const CUdeviceptr *address, size_t bytes, const char *call) {
    if (result == CUDA_SUCCESS && cus_keeping())
        cus_keep_span(CST_SPAN_FOREIGN, *address, bytes, 0, call);
}

CUresult cus_keep_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    bool kept = false;
    CUresult result = CUDA_SUCCESS;
    if (keeps(address, bytes))
        result = allocate(address, bytes, &kept);
    if (kept)
        return result;
    result = cus_keep_real.cuMemAlloc_v2(address, bytes);
    foreign(result, address, bytes, "cuMemAlloc");
    return result;
}

CUresult cus_keep_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width,
                                     size_t height, unsigned element) {
    bool kept = false, sound = element == 4 || element == 8 || element == 16;
    CUresult result = CUDA_SUCCESS;
    size_t row = (width + ALIGN - 1) / ALIGN * ALIGN;
    if (sound && pitch && height && row >= width && row <= (1ull << 40) / height &&
        keeps(address, row * height))
        result = allocate(address, row * height, &kept);
    if (kept && result == CUDA_SUCCESS)
        *pitch = row;
    if (kept)
        return result;
    result = cus_keep_real.cuMemAllocPitch_v2(address, pitch, width, height, element);
    if (result == CUDA_SUCCESS)
        foreign(result, address, *pitch * height, "cuMemAllocPitch");
    return result;
}

static CUresult release(CUdeviceptr address) {
    cus_lock_take(&cus_keep_lock);
    bool given = give(address);
    cus_lock_give(&cus_keep_lock);
    return given ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Waits, as the driver's function does: running work may still use the memory. */
CUresult cus_keep_cuMemFree_v2(CUdeviceptr address) {
    if (!in_arena(address)) {
        CUresult result = cus_keep_real.cuMemFree_v2(address);
        if (result == CUDA_SUCCESS)
            span_gone(address);
        return result;
    }
    CUcontext before = NULL;
    cus_keep_real.cuCtxPushCurrent_v2(cus_keep_of());
    CUresult result = cus_keep_real.cuCtxSynchronize();
    cus_keep_real.cuCtxPopCurrent_v2(&before);
    if (result == CUDA_SUCCESS)
        cus_keep_waited_all();
    return result == CUDA_SUCCESS ? release(address) : result;
}

static CUresult free_async(CUresult (*real)(CUdeviceptr, CUstream),
                           CUresult (*synchronize)(CUstream), CUdeviceptr address,
                           CUstream stream) {
    if (!in_arena(address)) {
        CUresult result = real(address, stream);
        if (result == CUDA_SUCCESS)
            span_gone(address);
        return result;
    }
    CUresult result = synchronize(stream);
    if (result == CUDA_SUCCESS)
        cus_keep_waited_all();
    return result == CUDA_SUCCESS ? release(address) : result;
}

CUresult cus_keep_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return free_async(cus_keep_real.cuMemFreeAsync, cus_keep_real.cuStreamSynchronize, address,
                      stream);
}

CUresult cus_keep_cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
    return free_async(cus_keep_real.cuMemFreeAsync_ptsz, cus_keep_real.cuStreamSynchronize_ptsz,
                      address, stream);
}

/* ---- memory of other kinds: only its place is recorded ---- */

static CUresult host_made(CUresult result, const void *address, size_t bytes, const char *call) {
    if (result == CUDA_SUCCESS && cus_keeping())
        cus_keep_span(CST_SPAN_HOST, (uint64_t)(uintptr_t)address, bytes, 0, call);
    return result;
}

CUresult cus_keep_cuMemAllocHost_v2(void **address, size_t bytes) {
    CUresult result = cus_keep_real.cuMemAllocHost_v2(address, bytes);
    return result == CUDA_SUCCESS ? host_made(result, *address, bytes, "cuMemAllocHost") : result;
}

CUresult cus_keep_cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    CUresult result = cus_keep_real.cuMemHostAlloc(address, bytes, flags);
    return result == CUDA_SUCCESS ? host_made(result, *address, bytes, "cuMemHostAlloc") : result;
}

CUresult cus_keep_cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags) {
    return host_made(cus_keep_real.cuMemHostRegister_v2(address, bytes, flags), address, bytes,
                     "cuMemHostRegister");
}

CUresult cus_keep_cuMemFreeHost(void *address) {
    CUresult result = cus_keep_real.cuMemFreeHost(address);
    if (result == CUDA_SUCCESS)
        span_gone((uint64_t)(uintptr_t)address);
    return result;
}

CUresult cus_keep_cuMemHostUnregister(void *address) {
    CUresult result = cus_keep_real.cuMemHostUnregister(address);
    if (result == CUDA_SUCCESS)
        span_gone((uint64_t)(uintptr_t)address);
    return result;
}

CUresult cus_keep_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
    CUresult result = cus_keep_real.cuMemAllocManaged(address, bytes, flags);
    foreign(result, address, bytes, "cuMemAllocManaged");
    return result;
}

#define POOL(symbol, parameters, arguments)                                                        \
    CUresult cus_keep_##symbol parameters {                                                        \
        CUresult result = cus_keep_real.symbol arguments;                                          \
        foreign(result, address, bytes, #symbol);                                                  \
        return result;                                                                             \
    }
POOL(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream),
     (address, bytes, stream))
POOL(cuMemAllocAsync_ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream),
     (address, bytes, stream))
POOL(cuMemAllocFromPoolAsync,
     (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
     (address, bytes, pool, stream))
POOL(cuMemAllocFromPoolAsync_ptsz,
     (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
     (address, bytes, pool, stream))

CUresult cus_keep_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long flags) {
    CUresult result = cus_keep_real.cuMemMap(address, bytes, offset, handle, flags);
    foreign(result, &address, bytes, "cuMemMap");
    return result;
}

/* ---- contents ---- */

static bool read_device(void *to, uint64_t from, size_t bytes) {
    return cus_keep_real.cuMemcpyDtoH_v2(to, from, bytes) == CUDA_SUCCESS;
}

/* Leaves zeros out: memory that no block of the trace names is zero. */
static void save(uint64_t address, const uint8_t *at, size_t bytes) {
    static const uint8_t zeros[GRAIN];
    size_t from = 0, end = 0;
    for (size_t i = 0; i < bytes; i += GRAIN) {
        size_t n = bytes - i < GRAIN ? bytes - i : GRAIN;
        if (memcmp(at + i, zeros, n) == 0) {
            cus_record_data(CST_DATA_MEMORY, 0, address + from, at + from, end - from);
            from = end = i + n;
        } else {
            end = i + n;
        }
    }
    cus_record_data(CST_DATA_MEMORY, 0, address + from, at + from, end - from);
}

static void tell_check(uint64_t address, const uint8_t *at, size_t bytes) {
    struct cst_check check = {
        .head = {.type = CST_CHECK, .words = sizeof check / 8},
        .address = address,
        .bytes = bytes,
        .check = cst_checksum(at, bytes),
    };
    cus_record_define(&check.head);
}

static void each_chunk(uint64_t address, uint64_t bytes,
                       void (*with)(uint64_t address, const uint8_t *at, size_t bytes),
                       uint8_t *buffer) {
    for (uint64_t done = 0; done < bytes; done += CHUNK) {
        size_t n = bytes - done < CHUNK ? (size_t)(bytes - done) : CHUNK;
        if (!read_device(buffer, address + done, n)) {
            cus_keep_cannot("cuMemcpyDtoH", "device memory could not be read");
            return;
        }
        with(address + done, buffer, n);
    }
}

/* A part of the memory. Parts are listed first, so that no lock is held while memory is read. */
struct part {
    uint64_t address, bytes;
};

static struct part *list_parts(bool blocks, size_t *n) {
    struct part *parts;
    size_t most = 1;
    *n = 0;
    cus_lock_take(&cus_keep_lock);
    for (struct block *block = arena.blocks; block; block = block->next)
        most++;
    for (struct span *span = spans; span; span = span->next)
        most++;
    if ((parts = cus_mem_alloc(most * sizeof *parts))) {
        for (struct block *block = arena.blocks; blocks && block; block = block->next)
            parts[(*n)++] = (struct part){block->address, block->bytes};
        if (!blocks && arena.end > arena.base)
            parts[(*n)++] = (struct part){arena.base, arena.end - arena.base};
        for (struct span *span = spans; !blocks && span; span = span->next)
            if (span->what == CST_SPAN_GLOBAL)
                parts[(*n)++] = (struct part){span->address, span->bytes};
    }
    cus_lock_give(&cus_keep_lock);
    return parts;
}

static void each_part(bool blocks,
                      void (*with)(uint64_t address, const uint8_t *at, size_t bytes)) {
    size_t n;
    struct part *parts = list_parts(blocks, &n);
    uint8_t *buffer = cus_mem_alloc(CHUNK);
    if (!parts || !buffer)
        cus_keep_cannot("", "no memory to read device memory into");
    for (size_t i = 0; parts && buffer && i < n; i++)
        each_chunk(parts[i].address, parts[i].bytes, with, buffer);
    cus_mem_free(parts);
    cus_mem_free(buffer);
}

void cus_keep_memory_save(void) {
    each_part(false, save);
}

/* Freed memory is checked as well: most programs have freed everything by then. */
void cus_keep_memory_check(void) {
    each_part(true, tell_check);
}
