/*
 * Reads programs and libraries of 64 bits as files, by their section tables. Probes call it, in
 * their children. It never loads a file, and believes no offset in it unchecked.
 */
#ifndef CUSPLICE_TOOLS_DOCTOR_ELF_H
#define CUSPLICE_TOOLS_DOCTOR_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

struct doctor_elf {
    const unsigned char *base; /* mapped; NULL: not open */
    size_t bytes;
    const Elf64_Ehdr *head;
};

/* False: it cannot be read, or is no 64-bit ELF file. */
bool doctor_elf_open(struct doctor_elf *elf, const char *path);
void doctor_elf_close(struct doctor_elf *elf);

/* The dynamic loader that it names; NULL: none. */
const char *doctor_elf_loader(const struct doctor_elf *elf);
/* The i-th library that it needs; NULL behind the last. */
const char *doctor_elf_needed(const struct doctor_elf *elf, unsigned i);
/* Does it export, or import, the name? */
bool doctor_elf_exports(const struct doctor_elf *elf, const char *name);
bool doctor_elf_imports(const struct doctor_elf *elf, const char *name);
bool doctor_elf_has_section(const struct doctor_elf *elf, const char *name);
/* Does the text stand anywhere in it? */
bool doctor_elf_holds(const struct doctor_elf *elf, const char *text);

#endif
