/*
 * Does an image of code end where its bytes end? The driver reads as far as the image says. One of
 * a trace may say more than there is, and the driver would read what lies behind it.
 */
#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "harness/player/player.h"
#include "shim/base/fatbin.h"

static bool holds(uint64_t all, uint64_t from, uint64_t n) {
    return from <= all && n <= all - from;
}

static bool elf_is_whole(const uint8_t *bytes, uint64_t n) {
    Elf64_Ehdr head;
    if (n < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (!holds(n, head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize) ||
        !holds(n, head.e_phoff, (uint64_t)head.e_phnum * head.e_phentsize) ||
        head.e_shentsize != sizeof(Elf64_Shdr) ||
        (head.e_phnum && head.e_phentsize != sizeof(Elf64_Phdr)))
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, bytes + head.e_phoff + i * sizeof segment, sizeof segment);
        if (!holds(n, segment.p_offset, segment.p_filesz))
            return false;
    }
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + head.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && !holds(n, section.sh_offset, section.sh_size))
            return false;
    }
    return true;
}

bool player_image_is_whole(const uint8_t *bytes, uint64_t n) {
    uint32_t magic = 0;
    struct cus_fatbin head;
    memcpy(&magic, bytes, n < sizeof magic ? n : sizeof magic);
    if (magic == CUS_FATBIN_WRAPPER_MAGIC)
        return false; /* the pointer is one of the process that was recorded */
    if (magic == CUS_FATBIN_MAGIC) {
        if (n < sizeof head)
            return false;
        memcpy(&head, bytes, sizeof head);
        return head.head_bytes >= sizeof head && holds(n, head.head_bytes, head.bytes);
    }
    if (n >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0)
        return elf_is_whole(bytes, n);
    return memchr(bytes, 0, n) != NULL; /* the text of PTX */
}
