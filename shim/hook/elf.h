/*
 * Reads what the loader has mapped of an object: its tables and where each of them ends.
 *
 * Called inside dl_iterate_phdr, on any thread. Takes no lock, allocates nothing and calls no
 * function of the loader. Reads each table only within the segment of the object that holds the
 * table.
 */
#ifndef CUSPLICE_HOOK_ELF_H
#define CUSPLICE_HOOK_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cus_object {
    const struct dl_phdr_info *info;
    uintptr_t base;
    const ElfW(Dyn) * dynamic, *dynamic_end;
    const ElfW(Sym) * symbols, *symbols_end;
    const char *texts, *texts_end;
    const uint32_t *hash, *hash_end; /* DT_GNU_HASH; NULL: the object has none */
    const uint32_t *sysv, *sysv_end; /* DT_HASH, the older form; NULL: none */
    const char *soname;              /* "" if the object has none */
    /* The relocations that the loader makes: for data and for calls. */
    struct cus_relocations {
        const ElfW(Rela) * first;
        size_t n;
    } data, calls;
};

/* False: the object has no string table, so it has no names. */
bool cus_elf_read(const struct dl_phdr_info *info, struct cus_object *object);
/* The segment of the object that holds the address; NULL: none does. */
const ElfW(Phdr) * cus_elf_segment(const struct dl_phdr_info *info, uintptr_t address);
bool cus_elf_holds(const struct dl_phdr_info *info, uintptr_t address);
/* The object's first address and the address behind its last. */
void cus_elf_measure(const struct dl_phdr_info *info, uintptr_t *low, uintptr_t *high);

/* The string at an offset of the object's string table; "" if the offset lies outside. */
const char *cus_elf_text(const struct cus_object *object, size_t offset);
uint32_t cus_elf_hash(const char *name);
/* The function `name` that the object exports; NULL: none. `hash` is cus_elf_hash(name). */
void *cus_elf_exported(const struct cus_object *object, const char *name, uint32_t hash);
/* The file's name without folders. */
const char *cus_elf_base(const char *path);

#endif
