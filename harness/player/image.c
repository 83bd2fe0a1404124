/*
 * The bytes of modules: out of the trace, or of the file that they were loaded from, which must be
 * the same as it was. No driver is called here.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

#include "harness/player/player.h"

/* ---- out of the trace ---- */

static const void *from_parts(struct player *p, const struct cst_module *module) {
    char error[600];
    size_t n;
    const struct cst_part *part = cst_data_of(p->trace, CST_DATA_IMAGE, module->id, &n);
    uint64_t got = 0;
    for (size_t i = 0; i < n && part[i].offset == got; i++)
        got += part[i].bytes;
    if (got != module->bytes || !got) {
        notes_add(&p->obstacles,
                  "the code of module %u is not whole in the trace: %" PRIu64 " of %" PRIu64
                  " bytes",
                  module->id, got, module->bytes);
        return NULL;
    }
    char *bytes = malloc(got);
    if (!bytes) {
        notes_add(&p->obstacles, "not enough memory for the code of module %u (%" PRIu64 " bytes)",
                  module->id, got);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (!cst_data_load(p->trace, &part[i], bytes + part[i].offset, error, sizeof error)) {
            notes_add(&p->obstacles, "%s", error);
            free(bytes);
            return NULL;
        }
    p->images[module->id].file = bytes;
    return bytes;
}

/* ---- out of a file ---- */

/* The build id of a 64-bit ELF file in memory, in hexadecimal digits; "" where it has none. */
static void build_id_of(const unsigned char *file, size_t bytes, char *out, size_t room) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)file;
    *out = 0;
    if (bytes < sizeof *head || memcmp(file, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_phentsize != sizeof(Elf64_Phdr))
        return;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        uint64_t where = head->e_phoff + (uint64_t)i * sizeof part;
        if (where > bytes || bytes - where < sizeof part)
            return;
        memcpy(&part, file + where, sizeof part);
        if (part.p_type != PT_NOTE || part.p_offset > bytes ||
            part.p_filesz > bytes - part.p_offset)
            continue;
        const unsigned char *at = file + part.p_offset, *end = at + part.p_filesz;
        while ((size_t)(end - at) >= sizeof(Elf64_Nhdr)) {
            Elf64_Nhdr note;
            memcpy(&note, at, sizeof note);
            uint64_t name = (note.n_namesz + 3ull) & ~3ull, value = (note.n_descsz + 3ull) & ~3ull;
            if (name + value > (size_t)(end - at) - sizeof note)
                break;
            const unsigned char *text = at + sizeof note;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                memcmp(text, "GNU", 4) == 0) {
                for (unsigned k = 0; k < note.n_descsz && 2 * k + 3 <= room; k++)
                    snprintf(out + 2 * k, 3, "%02x", text[name + k]);
                return;
            }
            at = text + name + value;
        }
    }
}

static const void *from_file(struct player *p, const struct cst_module *module) {
    const char *path = cst_string(p->trace, module->file);
    const char *wanted = cst_string(p->trace, module->build_id);
    struct stat is;
    char id[80];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) != 0) {
        notes_add(&p->obstacles, "%s: its code was launched, and it cannot be read: %s", path,
                  strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    size_t bytes = S_ISREG(is.st_mode) ? (size_t)is.st_size : 0;
    unsigned char *file = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (file == MAP_FAILED) {
        notes_add(&p->obstacles, "%s: its code was launched, and it cannot be mapped", path);
        return NULL;
    }
    build_id_of(file, bytes, id, sizeof id);
    if (*wanted && strcmp(id, wanted) != 0)
        notes_add(&p->obstacles,
                  "%s: not the file that was recorded: its build id is %s and was %s: install that "
                  "version again",
                  path, *id ? id : "not there", wanted);
    else if (module->offset > bytes || module->bytes > bytes - module->offset || !module->bytes)
        notes_add(
            &p->obstacles,
            "%s: not the file that was recorded: it has %zu bytes, and the code lay at %" PRIu64
            " to %" PRIu64,
            path, bytes, module->offset, module->offset + module->bytes);
    else {
        p->images[module->id].file = file;
        p->images[module->id].mapped = bytes;
        return file + module->offset;
    }
    munmap(file, bytes);
    return NULL;
}

/* ---- all of them ---- */

static void find_image(struct player *p, const struct cst_module *module) {
    const void *bytes = NULL;
    if (module->form == CST_MODULE_IMAGE)
        bytes = from_parts(p, module);
    else if (module->form == CST_MODULE_FILE)
        bytes = from_file(p, module);
    else
        notes_add(&p->obstacles, "module %u is kept in a way that this player does not know",
                  module->id);
    if (!bytes)
        return;
    if (XXH3_64bits(bytes, module->bytes) != module->check) {
        const char *file = cst_string(p->trace, module->file);
        notes_add(&p->obstacles, "%s%sthe code of module %u is not what was recorded (checksum)",
                  file, *file ? ": " : "", module->id);
        return;
    }
    p->images[module->id].bytes = bytes;
    p->images[module->id].cubin = module->bytes > SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

void player_images(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    p->images = player_need(calloc(replay->n_modules + (size_t)1, sizeof *p->images));
    bool *needed = player_need(calloc(replay->n_modules + (size_t)1, sizeof *needed));
    for (uint32_t i = 0; i < replay->n_codes; i++) {
        if (!replay->codes[i] || !p->used[i])
            continue;
        needed[replay->codes[i]->module] = true;
        if (!replay->codes[i]->module)
            notes_add(&p->obstacles, "kernel %s: which module its code is from was not recorded",
                      cst_string(p->trace, replay->codes[i]->name));
    }
    for (size_t i = 0; i < p->n_globals; i++)
        needed[p->globals[i].span->module] = true;
    for (uint32_t i = 1; i < replay->n_modules; i++)
        if (needed[i] && replay->modules[i])
            find_image(p, replay->modules[i]);
    free(needed);
}
