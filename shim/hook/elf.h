/*
 * What the loader has mapped of an object: its tables, and where they end.
 *
 * Called inside dl_iterate_phdr, on any thread; takes no lock of its own, allocates nothing, calls
 * nothing of the loader. Every table of an object is read within the segment that holds it.
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
    const uint32_t *hash, *hash_end; /* DT_GNU_HASH; NULL where there is none */
    const uint32_t *sysv, *sysv_end; /* DT_HASH, the older form; the same */
    const char *soname;              /* "" where it has none */
    /* What the loader relocates: for data, and for calls. */
    struct cus_relocations {
        const ElfW(Rela) * first;
        size_t n;
    } data, calls;
};

/* False: it has no texts, hence no names. */
bool cus_elf_read(const struct dl_phdr_info *info, struct cus_object *object);
/* The segment that holds the address; NULL: the object does not. */
const ElfW(Phdr) * cus_elf_segment(const struct dl_phdr_info *info, uintptr_t address);
bool cus_elf_holds(const struct dl_phdr_info *info, uintptr_t address);
/* Where the object begins and ends in memory. */
void cus_elf_measure(const struct dl_phdr_info *info, uintptr_t *low, uintptr_t *high);

/* A text of the object by its offset; "" where that lies outside of the texts. */
const char *cus_elf_text(const struct cus_object *object, size_t offset);
uint32_t cus_elf_hash(const char *name);
/* The function of that name that the object exports; `hash` is cus_elf_hash(name). NULL: none. */
void *cus_elf_exported(const struct cus_object *object, const char *name, uint32_t hash);
/* The name without folders. */
const char *cus_elf_base(const char *path);

#endif
