/*
 * uthash as this library uses it. Its memory comes from base/mem.h. If memory runs out, the element
 * stays outside the table (HASH_NONFATAL_OOM: el->hh.tbl is then NULL), where plain uthash would
 * end the process.
 */
#ifndef CUSPLICE_BASE_UTHASH_H
#define CUSPLICE_BASE_UTHASH_H

#include "shim/base/mem.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) cus_mem_alloc(bytes)
#define uthash_free(memory, bytes) cus_mem_free(memory)

#include <uthash.h>

#endif
