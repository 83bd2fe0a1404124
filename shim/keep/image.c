/*
 * Reads only the heads of an image. The callback, which runs under the loader's lock, compares
 * addresses and copies names.
 */
#define _GNU_SOURCE
#include "shim/keep/image.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/build_id.h"
#include "shim/base/fatbin.h"

#include "shim/base/forbid.h"

static size_t elf_bytes(const uint8_t *at) {
    Elf64_Ehdr head;
    memcpy(&head, at, sizeof head);
    uint64_t end = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    uint64_t programs = head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize;
    end = programs > end ? programs : end;
    if (head.e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, at + head.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
            end = section.sh_offset + section.sh_size;
    }
    return end;
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct cus_keep_image *image = context;
    uintptr_t address = (uintptr_t)image->at;
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || address - start >= segment->p_filesz ||
            image->bytes > segment->p_filesz - (address - start))
            continue;
        /* A segment that may be written may differ from the file by now. */
        const char *path = info->dlpi_name ? info->dlpi_name : "";
        if (segment->p_flags & PF_W || strlen(path) >= sizeof image->path)
            return 1;
        image->offset = segment->p_offset + (address - start);
        cus_build_id(info, image->build_id, sizeof image->build_id);
        memcpy(image->path, path, strlen(path) + 1);
        if (!*path) {
            ssize_t n = readlink("/proc/self/exe", image->path, sizeof image->path - 1);
            image->path[n > 0 ? n : 0] = 0;
        }
        return 1;
    }
    return 0;
}

bool cus_keep_image_find(const void *given, struct cus_keep_image *image) {
    uint32_t magic;
    memset(image, 0, sizeof *image);
    memcpy(&magic, given, sizeof magic);
    if (magic == CUS_FATBIN_WRAPPER_MAGIC) {
        struct cus_fatbin_wrapper wrapper;
        memcpy(&wrapper, given, sizeof wrapper);
        if (!(given = wrapper.data))
            return false;
        memcpy(&magic, given, sizeof magic);
    }
    image->at = given;
    if (magic == CUS_FATBIN_MAGIC) {
        struct cus_fatbin head;
        memcpy(&head, given, sizeof head);
        image->bytes = (size_t)(head.head_bytes + head.bytes);
    } else if (memcmp(given, ELFMAG, SELFMAG) == 0) {
        image->bytes = elf_bytes(given);
    } else {
        image->bytes = strlen(given) + 1;
    }
    if (!image->bytes)
        return false;
    dl_iterate_phdr(visit, image);
    return true;
}
