/*
 * The trace file, .cst: what a program asked of the GPU, when, and what became of it. README.md in
 * this folder describes it byte by byte; writers and readers share this header.
 *
 * Version 1. All numbers are little endian. No struct has padding that is not a named field. The
 * lengths of all records are multiples of 8. A reader skips record types and block types that it
 * does not know; the meaning of what exists never changes.
 */
#ifndef CUSPLICE_TRACE_FORMAT_H
#define CUSPLICE_TRACE_FORMAT_H

#include <stdint.h>

#define CST_MAGIC "\211CST\r\n\032\n"

enum {
    CST_VERSION = 1,
    CST_MARK = 0x01020304,    /* as a little-endian machine writes it */
    CST_BLOCK_MAX = 64 << 20, /* the most raw bytes in a block */
    CST_NONE = 0xffffffff,    /* in place of an id: there is none */
};

/* ---- the file: one cst_file, then blocks up to the end ---- */

struct cst_file {
    char magic[8];
    uint32_t version;
    uint32_t mark;
    uint64_t reserved[2]; /* 0 */
};

enum cst_block_type {
    CST_BLOCK_FACTS = 1,   /* a JSON object: what recorded what; the last one counts */
    CST_BLOCK_RECORDS = 2, /* records, one after another */
    CST_BLOCK_END = 3,     /* no payload: the file was closed in good order */
    CST_BLOCK_DATA = 4,    /* a struct cst_data and its bytes; in replayable traces */
};

enum { CST_BLOCK_ZSTD = 1 }; /* flags: the payload is one zstd frame */

struct cst_block {
    uint32_t type, flags;
    uint64_t bytes; /* of the payload in the file, which zeros pad to a multiple of 8 */
    uint64_t raw;   /* of the unpacked payload */
    uint64_t check; /* XXH3_64bits of the payload in the file, seeded with type + (flags << 32) */
};

/* What a part of something larger than a record belongs to. */
enum cst_data_of {
    CST_DATA_IMAGE = 1,  /* the code of a CST_MODULE */
    CST_DATA_MEMORY = 2, /* device memory at the beginning of the recording; `offset` is its
                          * address. Memory in no such block was zero */
    CST_DATA_INPUT = 3,  /* what a copy of CST_WORK_COPY read from the host */
};

struct cst_data {
    uint32_t of; /* enum cst_data_of */
    uint32_t id; /* of the module or input; memory: 0 */
    uint64_t offset;
    uint64_t bytes; /* after this struct */
};

/* ---- records ---- */

enum cst_type {
    /* Definitions. They may follow records that refer to them. */
    CST_STRING = 1,
    CST_THREAD = 2,
    CST_STREAM = 3,
    CST_KIND = 4,
    CST_RANGE = 5,
    /* What the program asked for. */
    CST_OP = 16,
    CST_CALL = 17,
    /* What the library did with it. */
    CST_FLUSH = 32,
    CST_LAUNCH = 33,
    CST_SEGMENT = 34,
    CST_LOST = 35,
    CST_BRANCH = 36,
    /* What the GPU did, as CUPTI says; only if the user asked for it. */
    CST_GPU = 48,
    CST_GPU_STREAM = 49,
    CST_GPU_CONTEXT = 50,
    /* What a replay does without the program; only if the user asked for it. */
    CST_MODULE = 64,
    CST_CODE = 65,
    CST_SPAN = 66,
    CST_LANE = 67,
    CST_WORK = 68,
    CST_CHECK = 69,
    CST_OBSTACLE = 70,
};

struct cst_record {
    uint8_t type;
    uint8_t flags;   /* of the type */
    uint16_t words;  /* length with this head, in units of 8 bytes */
    uint32_t thread; /* id of the CST_THREAD of the thread that wrote it */
    uint64_t ns;     /* its beginning by CLOCK_MONOTONIC; a definition: when it was written */
};

/* Text without a final NUL, padded with zeros. Id 0 is the empty string and never defined. */
struct cst_string {
    struct cst_record head;
    uint32_t id, bytes;
};

struct cst_thread {
    struct cst_record head; /* `thread` is the thread's own id, from 1 on */
    uint32_t tid;           /* the kernel's number of the thread */
    uint32_t name;          /* string */
};

enum cst_stream_kind {
    CST_STREAM_LEGACY = 1,
    CST_STREAM_PER_THREAD = 2,
    CST_STREAM_CREATED = 3,
    CST_STREAM_UNKNOWN = 4, /* not asked: nothing is ever deferred on it */
};

struct cst_stream {
    struct cst_record head;
    uint32_t id;      /* from 1 on; a handle that is reused is another stream */
    uint32_t context; /* numbered from 1 on */
    uint64_t handle;  /* as the program first passed it */
    uint32_t kind;    /* enum cst_stream_kind */
    uint32_t flags;   /* from cuStreamGetFlags */
    int32_t priority;
    uint32_t device;
};

/* The driver's answer about an address that a memset or copy named. For virtual memory the range
 * is the mapping; there is no range if the address is not mapped or access is not allowed. */
struct cst_range {
    struct cst_record head;
    uint32_t context;
    int32_t result;       /* of cuPointerGetAttributes */
    uint64_t asked;       /* the address */
    uint64_t start, size; /* of the allocation that holds the address */
    uint32_t type;        /* CUmemorytype */
    uint32_t managed;
    int32_t device;
    uint32_t own; /* 1: memory of this very context; 2: of a pool; 3: mapped virtual memory */
};

enum cst_op_type {
    CST_OP_LAUNCH,
    CST_OP_MEMSET,
    CST_OP_COPY,
    CST_OP_RECORD,
    CST_OP_WAIT,
    CST_OP_TYPES
};

enum {                      /* flags of cst_kind */
       CST_KIND_OPAQUE = 1, /* params could not be read: its ops have none */
       CST_KIND_COOPERATIVE = 2,
       CST_KIND_KERNEL = 4,  /* the handle is a CUkernel */
       CST_KIND_NO_NODE = 8, /* no graph node can stand for it */
};

/* What ops have in common: a function with its attributes, a form of memset or copy, or that they
 * record events or wait for them. */
struct cst_kind {
    struct cst_record head;
    uint32_t id; /* from 1 on */
    uint32_t op; /* enum cst_op_type */
    uint32_t flags;
    uint32_t name; /* string: the kernel's mangled name; for other ops the call */
    uint32_t file; /* string: the library or program that the code comes from; 0: unknown */
    uint32_t elem; /* memset: bytes of an element */
    uint32_t form; /* copy: 0 cuMemcpyAsync, 1 DtoD, 2 HtoD, 3 DtoH; memset: 4 two-dimensional */
    uint32_t param_bytes;
    uint32_t cluster[3];   /* the grid is a multiple of these; 1, 1, 1 otherwise */
    uint32_t n_arguments;  /* number of struct cst_argument after this struct */
    uint32_t n_attributes; /* number of struct cst_attribute after those; opaque: ids alone */
    uint32_t reserved;     /* 0 */
    uint64_t handle;       /* the function as the program named it */
};

struct cst_argument {
    uint32_t offset, bytes; /* in the params */
};

struct cst_attribute { /* a launch attribute */
    uint32_t id, bytes;
    uint64_t value[8];
};

enum cst_outcome {
    CST_DEFERRED = 1, /* reported as launched; the next LAUNCH or FLUSH of its stream says more */
    CST_EAGER = 2,    /* issued by itself, by the program's own call */
};

/*
 * A launch, memset, copy, record of an event, or wait of a stream for an event. Its params follow
 * it (param_bytes of its kind, padded):
 *
 *   launch  the kernel's arguments at the offsets of the kind
 *   memset  u64 address, u64 pitch, u32 value, u32 height
 *   copy    u64 destination, u64 source
 *   record  u64 event, u64 number that tells events with the same handle apart
 *   wait    u64 event, u64 0
 *
 * A copy of 1, 2 or 4 bytes from pageable memory may be here as the memset that stands for it.
 */
struct cst_op {
    struct cst_record head; /* flags: enum cst_outcome */
    uint32_t kind, stream;
    uint32_t host_ns; /* from the call to its return; README.md says of which ops it is measured */
    int32_t result;   /* CUresult that the program saw */
    uint32_t eager;   /* string: key of `eager_by` in the stats file; 0 if deferred */
    uint32_t why;     /* string: key of why.def; 0 if deferred */
    uint32_t dims[7]; /* launch: grid, block, shared memory; memset: elements (low, high); copy:
                       * bytes (low, high) */
    uint32_t abi;     /* 1: the program called a per-thread form (_ptsz) */
};

/* What a call that is not an op means to the library. */
enum cst_what {
    CST_CALL_FLUSH = 1, /* ordered with work: what `scope` covers is issued first */
    CST_CALL_STEP_END,  /* the stream is complete, or is about to be waited for; ends a step */
    CST_CALL_BREAK,     /* the program asked for a break (cusplice.h) */
    CST_CALL_SUSPEND,   /* value 1: suspend; 0: resume */
    CST_CALL_COPYING,   /* a copy that may sleep begins (1) or has ended (0) */
    CST_CALL_STREAM_GONE,
    CST_CALL_CONTEXT_GONE,
    CST_CALL_CODE_GONE,
    CST_CALL_MEMORY_GONE,
    CST_CALL_GIVE_BACK,        /* memory ran out: graphs are destroyed */
    CST_CALL_FUNCTION_CHANGED, /* value: the handle; 0: any */
    CST_CALL_STREAM_CHANGED,
    CST_CALL_TAINT, /* value: the handle; 0: any */
    CST_CALL_CAPTURE_BEGAN,
    CST_CALL_CAPTURE_ENDED,
    CST_CALL_UNKNOWN,    /* an entry point that the library does not know */
    CST_CALL_PROFILING,  /* a profiler began (1) or ended (0) */
    CST_CALL_OFF,        /* nothing is deferred any more */
    CST_CALL_DRAIN,      /* the program ends */
    CST_CALL_WAITED,     /* the host has seen the stream complete, by the named call */
    CST_CALL_EVENT_SEEN, /* the named call is the first since its last record to tell whether the
                          * event `value` was recorded */
    CST_CALL_EVENT_GONE, /* the named call destroys the event `value` */
    CST_CALLS,
};

enum cst_scope { /* stream, thread, context, context and thread, process (cuda_api.def) */
                 CST_SCOPE_NONE,
                 CST_SCOPE_S,
                 CST_SCOPE_T,
                 CST_SCOPE_C,
                 CST_SCOPE_CT,
                 CST_SCOPE_P
};

struct cst_call {
    struct cst_record head;
    uint32_t name;   /* string: the API; 0: none */
    uint32_t stream; /* CST_NONE: the call names none */
    uint8_t what;    /* enum cst_what */
    uint8_t scope;   /* enum cst_scope, of CST_CALL_FLUSH */
    uint8_t abi;
    uint8_t reserved;
    uint32_t host_ns; /* spent in the library on the call */
    uint64_t value;   /* of a flush by cuEventRecord or cuStreamWaitEvent: the event; 0: unknown */
};

/* The oldest `n` deferred ops of a stream were issued one by one. Those of other streams that the
 * thread had forked from it are among the `n`; CST_BRANCH tells of them. */
struct cst_flush {
    struct cst_record head;
    uint32_t stream, n;
    uint32_t cause;  /* string: the API, or a key of `flushes` */
    uint32_t reason; /* string: a key of `breaks` */
};

enum cst_choice { CST_EXACT = 1, CST_PATCHED = 2, CST_BUILT = 3 };

/* The oldest `n` deferred ops of a stream were issued in a graph. CST_BRANCH as above. */
struct cst_launch {
    struct cst_record head; /* flags: enum cst_choice */
    uint32_t stream, n;
    uint32_t segment;  /* of CST_SEGMENT */
    uint32_t variant;  /* numbered within the segment */
    uint32_t patched;  /* number of nodes */
    uint32_t host_ns;  /* for patching and launching */
    uint32_t build_ns; /* for building; 0: the graph was not built now */
    uint32_t bytes;    /* of the graph: an estimate. May be 0 unless it was built now */
};

/* Of the thread's next CST_FLUSH or CST_LAUNCH, `n` ops are the oldest deferred ones of this other
 * stream. */
struct cst_branch {
    struct cst_record head;
    uint32_t stream, n;
};

/* `n` consecutive ops became one segment. */
struct cst_segment {
    struct cst_record head;
    uint32_t id, stream, n;
    uint32_t reserved;
};

enum cst_gpu_what { CST_GPU_KERNEL, CST_GPU_MEMCPY, CST_GPU_MEMSET };

/* Something ran. Within a stream the order holds: the n-th op of a stream is the n-th that ran
 * there, except for what the program launched in graphs of its own. */
struct cst_gpu {
    struct cst_record
        head;        /* ns: its beginning on the GPU, by the host's clock; flags: cst_gpu_what */
    uint64_t gpu_ns; /* how long it ran */
    uint32_t device, context, gpu_stream; /* CUPTI's numbers */
    uint32_t correlation;                 /* CUPTI's, of the call that launched it */
    uint32_t name;                        /* string: the kernel's mangled name */
    uint32_t grid[3];
    uint64_t bytes; /* of a copy or memset; of a node: when it was built, even if patched since */
    uint64_t node;  /* CUPTI's, of the graph node; 0: it was in no graph */
};

/* CUPTI's number of a stream, which streams of other contexts may have too. */
struct cst_gpu_stream {
    struct cst_record head;
    uint32_t stream;
    uint32_t gpu_stream;
};

/* CUPTI's number of the stream's context. */
struct cst_gpu_context {
    struct cst_record head;
    uint32_t stream;
    uint32_t context; /* as in cst_gpu */
};

/* ---- replayable traces: all that a replay needs and reads ---- */

enum cst_module_form {
    CST_MODULE_IMAGE = 1, /* its bytes are in CST_DATA_IMAGE blocks */
    CST_MODULE_FILE = 2,  /* its bytes are those of `file` at `offset` */
};

/* The program loaded code. Also written for code that was loaded before the recording began. */
struct cst_module {
    struct cst_record head;
    uint32_t id; /* from 1 on */
    uint32_t form;
    uint32_t library;  /* 1: by cuLibraryLoad..., 0: by cuModuleLoad... */
    uint32_t file;     /* string: a path */
    uint32_t build_id; /* string: of that file, hexadecimal; 0: it has none */
    uint32_t reserved;
    uint64_t offset, bytes;
    uint64_t check; /* XXH3_64bits of the bytes */
};

/* A function that a CST_WORK names. */
struct cst_code {
    struct cst_record head;
    uint32_t id;           /* from 1 on */
    uint32_t module;       /* 0: its module is unknown */
    uint32_t name;         /* string, mangled */
    uint32_t kernel;       /* 1: a CUkernel */
    uint32_t n_arguments;  /* number of struct cst_argument after this struct */
    uint32_t n_attributes; /* number of struct cst_setting after those */
    uint32_t param_bytes;
    uint32_t reserved;
};

struct cst_setting {    /* of a function, if it is not the driver's default */
    uint32_t attribute; /* CUfunction_attribute */
    int32_t value;
};

enum cst_span_what {
    CST_SPAN_RESERVED = 1, /* all device memory of the trace lies within */
    CST_SPAN_DEVICE = 2,   /* device memory; it stays so after the program frees it */
    CST_SPAN_HOST = 3,     /* pinned or registered host memory, at the host's address */
    CST_SPAN_GLOBAL = 4,   /* a variable of a module; in another process it lies elsewhere */
    CST_SPAN_FOREIGN = 5,  /* memory that a replay cannot make: managed, of a pool, imported */
};

struct cst_span {
    struct cst_record head;
    uint32_t what;   /* enum cst_span_what */
    uint32_t module; /* CST_SPAN_GLOBAL */
    uint32_t name;   /* string: the variable, or the call that made the memory */
    uint32_t gone;   /* 1: this ends what an earlier span with the same address began */
    uint64_t address, bytes;
};

/* A stream that a CST_WORK names. */
struct cst_lane {
    struct cst_record head;
    uint32_t id;   /* from 1 on */
    uint32_t kind; /* enum cst_stream_kind */
    uint32_t flags;
    int32_t priority;
};

enum cst_work_what {
    CST_WORK_LAUNCH = 1,
    CST_WORK_MEMSET,
    CST_WORK_COPY,
    CST_WORK_RECORD, /* of an event */
    CST_WORK_WAIT,   /* of a stream for an event; for an event never recorded it is no wait */
    CST_WORK_SYNC,   /* the host waited: for the lane, for the event, or (neither) for all */
};

/* A call that the program made, in the order of `ns` and, if that is equal, of the file. */
struct cst_work {
    struct cst_record head; /* flags: enum cst_work_what */
    uint64_t gap_ns;        /* what the thread did by itself since its last such call */
    uint32_t lane;          /* 0: none */
    uint32_t code;          /* launch */
    uint32_t dims[7];       /* launch: grid, block, shared memory */
    uint32_t n_attributes;  /* launch: number of struct cst_attribute after this struct; then
                             * param_bytes of the code follow, padded */
    uint32_t cooperative;   /* launch: by cuLaunchCooperativeKernel */
    uint32_t elem, value;   /* memset: bytes of an element, its value */
    uint32_t input;         /* copy: id of CST_DATA_INPUT; 0: the source is device memory */
    uint32_t to_host;       /* copy: 1: the destination is the host's, at no matter which address */
    uint32_t sync; /* memset, copy: 1: by a call without Async; sync: 1: by a call that waits, 0:
                    * the program asked about an event, or freed memory */
    uint64_t to, from;             /* addresses */
    uint64_t width, height, pitch; /* copy: bytes in width; memset: elements in a row, rows, and
                                    * bytes from row to row */
    uint64_t event;                /* handle */
};

/* Device memory at the end of the recording. */
struct cst_check {
    struct cst_record head;
    uint64_t address, bytes;
    uint64_t check; /* XXH3_64bits */
};

/* The program did something that a replay cannot repeat. */
struct cst_obstacle {
    struct cst_record head; /* the first time */
    uint32_t call;          /* string: the API */
    uint32_t why;           /* string */
};

/* Records of this thread that were lost for want of room. */
enum cst_lost_flag {
    /* They stood in a part of a file that was damaged. No cst_launch or cst_flush behind it is of
     * ops in front of it. */
    CST_LOST_DAMAGE = 1,
};
struct cst_lost {
    struct cst_record head;
    uint64_t records, ops;
};

#endif
