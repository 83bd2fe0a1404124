/*
 * Finds what probes ask in a mapped ELF file. Every offset is compared with the file's length. A
 * file that shrinks meanwhile ends the child that reads it, and no more.
 */
#include "tools/doctor/elf.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* `n` things of `size` bytes at an offset; NULL: they are not all in the file. */
static const void *at(const struct doctor_elf *elf, uint64_t offset, uint64_t n, uint64_t size) {
    bool fits = offset <= elf->bytes && (!size || n <= (elf->bytes - offset) / size);
    return fits ? elf->base + offset : NULL;
}

/* A string in a table that begins at `table`; NULL: it does not end in the file. */
static const char *text_at(const struct doctor_elf *elf, uint64_t table, uint64_t offset) {
    if (table > elf->bytes || offset >= elf->bytes - table)
        return NULL;
    const char *text = (const char *)elf->base + table + offset;
    return memchr(text, 0, elf->bytes - table - offset) ? text : NULL;
}

bool doctor_elf_open(struct doctor_elf *elf, const char *path) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    void *base = MAP_FAILED;
    *elf = (struct doctor_elf){0};
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_size >= (off_t)sizeof(Elf64_Ehdr))
        base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (base == MAP_FAILED)
        return false;
    elf->base = base;
    elf->bytes = (size_t)info.st_size;
    elf->head = base;
    if (memcmp(elf->base, ELFMAG, SELFMAG) == 0 && elf->base[EI_CLASS] == ELFCLASS64)
        return true;
    doctor_elf_close(elf);
    return false;
}

void doctor_elf_close(struct doctor_elf *elf) {
    if (elf->base)
        munmap((void *)(uintptr_t)elf->base, elf->bytes);
    elf->base = NULL;
}

const char *doctor_elf_loader(const struct doctor_elf *elf) {
    const Elf64_Phdr *parts = at(elf, elf->head->e_phoff, elf->head->e_phnum, sizeof *parts);
    if (elf->head->e_phentsize != sizeof *parts)
        return NULL;
    for (unsigned i = 0; parts && i < elf->head->e_phnum; i++)
        if (parts[i].p_type == PT_INTERP)
            return text_at(elf, 0, parts[i].p_offset);
    return NULL;
}

static const Elf64_Shdr *sections(const struct doctor_elf *elf, unsigned *n) {
    *n = elf->head->e_shentsize == sizeof(Elf64_Shdr) ? elf->head->e_shnum : 0;
    const Elf64_Shdr *all = at(elf, elf->head->e_shoff, *n, sizeof *all);
    if (!all)
        *n = 0;
    return all;
}

/* The first section of a type, and where the texts that belong to it begin. */
static const Elf64_Shdr *section_of(const struct doctor_elf *elf, uint32_t type, uint64_t *texts) {
    unsigned n;
    const Elf64_Shdr *all = sections(elf, &n);
    for (unsigned i = 0; i < n; i++)
        if (all[i].sh_type == type && all[i].sh_link < n) {
            *texts = all[all[i].sh_link].sh_offset;
            return &all[i];
        }
    return NULL;
}

const char *doctor_elf_needed(const struct doctor_elf *elf, unsigned i) {
    uint64_t texts;
    const Elf64_Shdr *section = section_of(elf, SHT_DYNAMIC, &texts);
    uint64_t n = section ? section->sh_size / sizeof(Elf64_Dyn) : 0;
    const Elf64_Dyn *entries = section ? at(elf, section->sh_offset, n, sizeof *entries) : NULL;
    for (uint64_t k = 0; entries && k < n && entries[k].d_tag != DT_NULL; k++)
        if (entries[k].d_tag == DT_NEEDED && i-- == 0)
            return text_at(elf, texts, entries[k].d_un.d_val);
    return NULL;
}

static bool has_symbol(const struct doctor_elf *elf, const char *name, bool defined) {
    uint64_t texts;
    const Elf64_Shdr *section = section_of(elf, SHT_DYNSYM, &texts);
    uint64_t n = section ? section->sh_size / sizeof(Elf64_Sym) : 0;
    const Elf64_Sym *symbols = section ? at(elf, section->sh_offset, n, sizeof *symbols) : NULL;
    for (uint64_t i = 0; symbols && i < n; i++) {
        const char *text = (symbols[i].st_shndx != SHN_UNDEF) == defined
                               ? text_at(elf, texts, symbols[i].st_name)
                               : NULL;
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

bool doctor_elf_exports(const struct doctor_elf *elf, const char *name) {
    return has_symbol(elf, name, true);
}

bool doctor_elf_imports(const struct doctor_elf *elf, const char *name) {
    return has_symbol(elf, name, false);
}

bool doctor_elf_has_section(const struct doctor_elf *elf, const char *name) {
    unsigned n;
    const Elf64_Shdr *all = sections(elf, &n);
    if (elf->head->e_shstrndx >= n)
        return false;
    for (unsigned i = 0; i < n; i++) {
        const char *text = text_at(elf, all[elf->head->e_shstrndx].sh_offset, all[i].sh_name);
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

bool doctor_elf_holds(const struct doctor_elf *elf, const char *text) {
    return memmem(elf->base, elf->bytes, text, strlen(text)) != NULL;
}
