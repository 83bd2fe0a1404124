#define _GNU_SOURCE
#include "shim/base/build_id.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/forbid.h"

void cus_build_id(const struct dl_phdr_info *info, char *to, size_t bytes) {
    *to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
        const char *end = at + header->p_memsz;
        while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
            const char *name = at + sizeof *note;
            const char *value = name + ((note->n_namesz + 3u) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0 && 2 * (size_t)note->n_descsz < bytes) {
                for (unsigned k = 0; k < note->n_descsz; k++)
                    snprintf(to + 2 * k, 3, "%02x", (unsigned char)value[k]);
                return;
            }
            at = value + ((note->n_descsz + 3u) & ~3u);
        }
    }
}
