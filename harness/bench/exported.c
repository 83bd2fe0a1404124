/*
 * Looks a function up in a library's table of hashed names (DT_GNU_HASH). shim/hook/origin.c has
 * its own look-up: a program that measures the library must not share code with it.
 *
 * Any thread; no lock; the library must stay loaded.
 */
#define _GNU_SOURCE
#include "harness/bench/exported.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The header of DT_GNU_HASH, the table of functions by hashed name. */
struct hashes {
    uint32_t n_buckets, first, n_bloom, shift;
    ElfW(Addr) bloom[]; /* followed by the buckets, then a hash for each symbol from `first` on */
};

static uint32_t hash_of(const char *symbol) {
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)symbol; *c; c++)
        hash = hash * 33 + *c;
    return hash;
}

static const void *table(const struct link_map *map, ElfW(Sxword) tag) {
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag) /* the loader has turned offsets into addresses */
            return (const void *)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr
                                                              : d->d_un.d_ptr);
    return NULL;
}

void *exported(void *library, const char *symbol) {
    struct link_map *map;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    const struct hashes *hashes = table(map, DT_GNU_HASH);
    const ElfW(Sym) *symbols = table(map, DT_SYMTAB);
    const char *names = table(map, DT_STRTAB);
    if (!hashes || !symbols || !names || !hashes->n_buckets)
        return NULL;
    const uint32_t *buckets = (const uint32_t *)(hashes->bloom + hashes->n_bloom);
    const uint32_t *chain = buckets + hashes->n_buckets;
    uint32_t hash = hash_of(symbol), i = buckets[hash % hashes->n_buckets];
    if (i < hashes->first)
        return NULL;
    for (;; i++) {
        uint32_t other = chain[i - hashes->first];
        const ElfW(Sym) *found = &symbols[i];
        if ((other | 1) == (hash | 1) && found->st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(found->st_info) == STT_FUNC &&
            strcmp(names + found->st_name, symbol) == 0)
            return (void *)(map->l_addr + found->st_value);
        if (other & 1)
            return NULL;
    }
}
