/*
 * Blocks of memory, and the virtual memory that mappings lie in. Part of cusim.h, which includes
 * it.
 *
 * Under cusim.lock, unless a comment says otherwise.
 */
#ifndef CUSIM_MEMORY_H
#define CUSIM_MEMORY_H

enum cusim_mem_kind {
    CUSIM_MEM_PAGEABLE, /* not the simulator's */
    CUSIM_MEM_DEVICE,
    CUSIM_MEM_POOL,
    CUSIM_MEM_HOST,
    CUSIM_MEM_REGISTERED,
    CUSIM_MEM_MANAGED,
    CUSIM_MEM_VIRTUAL, /* a mapping; belongs to no context */
};

struct cusim_mem {
    uintptr_t base;
    size_t bytes;
    size_t reserved; /* bytes taken from the arena */
    enum cusim_mem_kind kind;
    struct cusim_ctx *ctx; /* NULL for a mapping */
    uint64_t ctx_id;
    int device;
    unsigned flags; /* of a mapping: the most that any device may do */
    uint64_t id;
    struct cusim_pool *pool;
    struct cusim_physical *physical;         /* of a mapping: the mapped memory */
    unsigned char access[CUSIM_DEVICES_MAX]; /* of a mapping: CUmemAccess_flags */
    bool freed; /* by cuMemFreeAsync: unusable, but still in the pool */
};

CUresult cusim_mem_alloc(enum cusim_mem_kind kind, struct cusim_ctx *ctx, size_t bytes,
                         unsigned flags, struct cusim_mem **out);
void cusim_mem_free(struct cusim_mem *mem);
/* A block of a pool is about to be freed, not in stream order. */
void cusim_pool_block_gone(struct cusim_mem *mem);
struct cusim_mem *cusim_mem_find(uintptr_t address); /* the live block around an address */
struct cusim_operand cusim_mem_operand(uintptr_t address);
struct cusim_mem *cusim_mem_at(uintptr_t base); /* the live block that begins at the address */
struct cusim_mem *cusim_mem_next(uintptr_t from,
                                 uintptr_t to); /* the first block that lies there in part */
void cusim_mem_insert(struct cusim_mem *mem);
enum cusim_mem_kind
cusim_mem_kind_of(uintptr_t address,
                  size_t bytes); /* PAGEABLE unless all of it is in one block, or in adjacent
                                    mappings that a device may read */
void cusim_ctx_memory_free(struct cusim_ctx *ctx);
size_t cusim_mem_used(int device);
bool cusim_mem_charge(int device, size_t bytes); /* false: the device has too little memory */
void cusim_mem_discharge(int device, size_t bytes);
/* Device memory of executable graphs; and what the pools hold for graphs, also after these are
 * gone. */
extern size_t cusim_graph_bytes, cusim_graph_held;

/* Check and fill in a copy or memset; empty ones are refused. */
CUresult cusim_memcpy_fill(struct cusim_work_memcpy *m, const CUDA_MEMCPY3D *p,
                           enum cusim_mem_kind *dst_kind, enum cusim_mem_kind *src_kind);
CUresult cusim_memset_fill(struct cusim_work_memset *m, CUdeviceptr dst, size_t pitch,
                           unsigned value, unsigned element, size_t width, size_t height,
                           enum cusim_mem_kind *kind);
/* Tells whether the address is the simulator's, even if free: in an arena or in a reservation.
 * Any thread, no lock. */
bool cusim_mem_in_arena(uintptr_t address);

/* ---- virtual memory ---- */

/* The reservation around an address; any thread, no lock. */
bool cusim_virtual_reserved(uintptr_t address, uintptr_t *base, size_t *bytes);
/* Tells whether all of it is mapped, and a device may access it in this way (CUmemAccess_flags). */
bool cusim_virtual_allows(uintptr_t address, size_t bytes, unsigned flags);

#endif
