/*
 * uthash as this library uses it: its memory comes from base/mem.h, and running out of it leaves
 * the element outside the table (HASH_NONFATAL_OOM: el->hh.tbl is NULL then) where uthash by itself
 * would end the process.
 */
#ifndef CUSPLICE_BASE_UTHASH_H
#define CUSPLICE_BASE_UTHASH_H

#include "shim/base/mem.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) cus_mem_alloc(bytes)
#define uthash_free(memory, bytes) cus_mem_free(memory)

#include <uthash.h>

#endif
