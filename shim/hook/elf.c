/*
 * Reads the tables that the loader has mapped (elf.h). Changes nothing and calls nothing but libc's
 * string functions.
 */
#define _GNU_SOURCE
#include "shim/hook/elf.h"

#include <string.h>

#include "shim/base/forbid.h"

const ElfW(Phdr) * cus_elf_segment(const struct dl_phdr_info *info, uintptr_t address) {
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            address - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return segment;
    }
    return NULL;
}

bool cus_elf_holds(const struct dl_phdr_info *info, uintptr_t address) {
    return cus_elf_segment(info, address) != NULL;
}

void cus_elf_measure(const struct dl_phdr_info *info, uintptr_t *low, uintptr_t *high) {
    *low = UINTPTR_MAX, *high = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        if (begin < *low)
            *low = begin;
        if (begin + segment->p_memsz > *high)
            *high = begin + segment->p_memsz;
    }
}

/* The end of the readable segment that holds `at`; `at` itself if no segment does. */
static const void *end_of(const struct cus_object *object, const void *at) {
    const ElfW(Phdr) *segment = cus_elf_segment(object->info, (uintptr_t)at);
    if (!segment || !(segment->p_flags & PF_R))
        return at;
    return (const void *)(object->base + segment->p_vaddr + segment->p_memsz);
}

/* The loader writes addresses there, or leaves offsets if it may not write. */
static const void *pointer(uintptr_t base, uintptr_t value) {
    return (const void *)(value < base ? base + value : value);
}

static void bound(const struct cus_object *object, struct cus_relocations *table, size_t bytes) {
    size_t room = (size_t)((const char *)end_of(object, table->first) - (const char *)table->first);
    table->n = (bytes < room ? bytes : room) / sizeof *table->first;
}

static void read_dynamic(struct cus_object *object) {
    uintptr_t soname = 0;
    size_t texts = 0, data = 0, calls = 0;
    bool rela = false;
    const ElfW(Dyn) *entry = object->dynamic;
    for (; entry < object->dynamic_end && entry->d_tag != DT_NULL; entry++) {
        const void *at = pointer(object->base, entry->d_un.d_ptr);
        size_t value = entry->d_un.d_val;
        switch (entry->d_tag) {
        case DT_SYMTAB:
            object->symbols = at;
            break;
        case DT_STRTAB:
            object->texts = at;
            break;
        case DT_STRSZ:
            texts = value;
            break;
        case DT_GNU_HASH:
            object->hash = at;
            break;
        case DT_HASH:
            object->sysv = at;
            break;
        case DT_SONAME:
            soname = value;
            break;
        case DT_RELA:
            object->data.first = at;
            break;
        case DT_RELASZ:
            data = value;
            break;
        case DT_JMPREL:
            object->calls.first = at;
            break;
        case DT_PLTRELSZ:
            calls = value;
            break;
        case DT_PLTREL:
            rela = value == DT_RELA;
            break;
        default:
            break;
        }
    }
    object->dynamic_end = entry;
    object->symbols_end = end_of(object, object->symbols);
    object->hash_end = end_of(object, object->hash);
    object->sysv_end = end_of(object, object->sysv);
    const char *end = end_of(object, object->texts);
    if (object->texts)
        object->texts_end =
            texts && texts < (size_t)(end - object->texts) ? object->texts + texts : end;
    bound(object, &object->data, data);
    bound(object, &object->calls, rela ? calls : 0);
    if (soname)
        object->soname = cus_elf_text(object, soname);
}

bool cus_elf_read(const struct dl_phdr_info *info, struct cus_object *object) {
    *object = (struct cus_object){.info = info, .base = info->dlpi_addr, .soname = ""};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_DYNAMIC)
            continue;
        object->dynamic = (const ElfW(Dyn) *)(object->base + (uintptr_t)segment->p_vaddr);
        object->dynamic_end = object->dynamic + segment->p_memsz / sizeof *object->dynamic;
    }
    if (!object->dynamic || !cus_elf_holds(info, (uintptr_t)object->dynamic))
        return false;
    read_dynamic(object);
    return object->texts != NULL;
}

const char *cus_elf_text(const struct cus_object *object, size_t offset) {
    if (!object->texts || offset >= (size_t)(object->texts_end - object->texts))
        return "";
    const char *text = object->texts + offset;
    return memchr(text, 0, (size_t)(object->texts_end - text)) ? text : "";
}

uint32_t cus_elf_hash(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

static bool is_function(const struct cus_object *object, const ElfW(Sym) * symbol,
                        const char *name) {
    return symbol < object->symbols_end && symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
           ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
           strcmp(cus_elf_text(object, symbol->st_name), name) == 0;
}

static void *address_of(const struct cus_object *object, const ElfW(Sym) * symbol) {
    return (void *)(object->base + symbol->st_value);
}

static void *find_by_gnu_hash(const struct cus_object *object, const char *name, uint32_t hash) {
    const uint32_t *table = object->hash;
    if (object->hash_end - table < 4)
        return NULL;
    uint32_t buckets = table[0], first = table[1], words = table[2], shift = table[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(const void *)(table + 4);
    const uint32_t *bucket = (const uint32_t *)(bloom + words), *chain = bucket + buckets;
    enum { BITS = 8 * sizeof(ElfW(Addr)) };
    if (!buckets || !words || (uint64_t)(object->hash_end - table) < 4 + 2ull * words + buckets)
        return NULL;
    ElfW(Addr) word = bloom[hash / BITS % words];
    if (!(word >> hash % BITS & word >> (hash >> shift) % BITS & 1))
        return NULL;
    for (uint32_t i = bucket[hash % buckets]; i >= first; i++) {
        const uint32_t *its = &chain[i - first];
        if (its >= object->hash_end)
            return NULL;
        if ((*its | 1) == (hash | 1) && is_function(object, &object->symbols[i], name))
            return address_of(object, &object->symbols[i]);
        if (*its & 1)
            return NULL;
    }
    return NULL;
}

/* The hash of DT_HASH, as defined by the System V ABI. */
static uint32_t sysv_hash(const char *name) {
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (uint8_t)*name;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    return hash;
}

/* A chain that is a circle ends after as many steps as there are symbols. */
static void *find_by_sysv_hash(const struct cus_object *object, const char *name) {
    const uint32_t *table = object->sysv;
    if (object->sysv_end - table < 2)
        return NULL;
    uint32_t buckets = table[0], symbols = table[1], steps = 0;
    const uint32_t *bucket = table + 2, *chain = bucket + buckets;
    if (!buckets || (uint64_t)(object->sysv_end - table) < 2ull + buckets + symbols)
        return NULL;
    for (uint32_t i = bucket[sysv_hash(name) % buckets]; i && i < symbols; i = chain[i]) {
        if (is_function(object, &object->symbols[i], name))
            return address_of(object, &object->symbols[i]);
        if (++steps > symbols)
            return NULL;
    }
    return NULL;
}

void *cus_elf_exported(const struct cus_object *object, const char *name, uint32_t hash) {
    if (!object->symbols)
        return NULL;
    if (object->hash)
        return find_by_gnu_hash(object, name, hash);
    return object->sysv ? find_by_sysv_hash(object, name) : NULL;
}

const char *cus_elf_base(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}
