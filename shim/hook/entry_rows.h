/*
 * For assembly: the kind of stub of each act. The including file defines the kinds.
 *
 *   JUMP     saves every register that a prototype may use and calls C. Then it jumps to the real
 *            function with the stack as it was, so that function returns to the caller.
 *   AROUND   for rows of at most six integer or pointer arguments. C makes the real call.
 *   RESTS    as AROUND. While the process rests (stream/rest.c), straight to the real function.
 *   FLAGS    as RESTS, unless the third argument, which is flags, is not 0.
 *   ALWAYS   as JUMP in any state: a setting that the program makes before cuInit still holds
 *            after it.
 *   WRAP     a C function has the symbol.
 *   NONE     the library does not export the symbol.
 */
#ifndef CUSPLICE_HOOK_ENTRY_ROWS_H
#define CUSPLICE_HOOK_ENTRY_ROWS_H

#define STUB_PASS(symbol) NONE(symbol)
#define STUB_WRAP(symbol) WRAP(symbol)
#define STUB_FLUSH(symbol) JUMP(symbol)
#define STUB_LOAD(symbol) AROUND(symbol)
#define STUB_MEMORY(symbol) JUMP(symbol)
#define STUB_CODE(symbol) JUMP(symbol)
#define STUB_GONE(symbol) JUMP(symbol)
#define STUB_TAINT(symbol) JUMP(symbol)
#define STUB_TOUCH(symbol) JUMP(symbol)
#define STUB_GETTER(symbol) JUMP(symbol)
#define STUB_SHOWS(symbol) JUMP(symbol)
#define STUB_EVENT_OWN(symbol) JUMP(symbol)
#define STUB_COUNT(symbol) JUMP(symbol)
#define STUB_DUMPS(symbol) ALWAYS(symbol)
#define STUB_GRAPHICS(symbol) JUMP(symbol)
#define STUB_SYNC(symbol) AROUND(symbol)
#define STUB_QUERY(symbol) AROUND(symbol)
#define STUB_POLL(symbol) RESTS(symbol)
#define STUB_EVENT_MADE(symbol) AROUND(symbol)
#define STUB_POOL_MADE(symbol) AROUND(symbol)
#define STUB_EVENT_GOES(symbol) AROUND(symbol)
#define STUB_RECORD(symbol) RESTS(symbol)
#define STUB_RECORD_FLAGS(symbol) FLAGS(symbol)
#define STUB_WAIT(symbol) AROUND(symbol)
#define STUB_ALLOC(symbol) AROUND(symbol)
#define STUB_ALLOC_ASYNC(symbol) AROUND(symbol)
#define STUB_FREE_ASYNC(symbol) AROUND(symbol)
#define STUB_EPOCH(symbol) AROUND(symbol)
#define STUB_SET_FUNCTION(symbol) AROUND(symbol)
#define STUB_SET_STREAM(symbol) AROUND(symbol)
#define STUB_COPY_STREAM(symbol) AROUND(symbol)
#define STUB_NOTE_FUNCTION(symbol) AROUND(symbol)
#define STUB_NOTE_KERNEL(symbol) AROUND(symbol)
#define STUB_KERNEL_FUNCTION(symbol) AROUND(symbol)
#define STUB_NOTE_MODULE(symbol) AROUND(symbol)
#define STUB_LIST_FUNCTIONS(symbol) AROUND(symbol)
#define STUB_LIST_KERNELS(symbol) AROUND(symbol)
#define STUB_RETAIN(symbol) AROUND(symbol)
#define STUB_CONTEXT(symbol) AROUND(symbol)
#define STUB_RELEASE(symbol) AROUND(symbol)
#define STUB_BEGIN(symbol) AROUND(symbol)
#define STUB_END(symbol) AROUND(symbol)

#endif
