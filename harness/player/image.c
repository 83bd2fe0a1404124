/*
 * Finds the bytes of modules: in the trace, or in the file that the program loaded, which must be
 * unchanged. The player copies both, so the driver gets exactly the checked bytes even if the file
 * changes later. Never calls the driver.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

#include "harness/player/player.h"

/* Room for a module's code; NULL after a reported obstacle. */
static char *room_for(struct player *p, const struct cst_module *module) {
    if (!player_take(p, module->bytes, "code"))
        return NULL;
    char *bytes = malloc(module->bytes);
    if (!bytes)
        notes_add(&p->obstacles, "not enough memory for the code of module %u (%" PRIu64 " bytes)",
                  module->id, module->bytes);
    return bytes;
}

/* ---- from the trace ---- */

static void *from_parts(struct player *p, const struct cst_module *module) {
    char error[600];
    size_t n, i = 0;
    const struct cst_part *part = cst_data_of(p->trace, CST_DATA_IMAGE, module->id, &n);
    uint64_t got = 0;
    for (; i < n && part[i].offset == got; i++)
        got += part[i].bytes;
    if (i < n || got != module->bytes || !got) {
        notes_add(&p->obstacles,
                  "the code of module %u is not whole in the trace: %" PRIu64 " of %" PRIu64
                  " bytes",
                  module->id, got, module->bytes);
        return NULL;
    }
    char *bytes = room_for(p, module);
    for (i = 0; bytes && i < n; i++)
        if (!cst_data_load(p->trace, &part[i], bytes + part[i].offset, error, sizeof error)) {
            notes_add(&p->obstacles, "%s", error);
            free(bytes);
            return NULL;
        }
    return bytes;
}

/* ---- from a file ---- */

struct file {
    int fd;
    uint64_t bytes;
};

static bool read_at(const struct file *file, void *to, uint64_t bytes, uint64_t where) {
    char *at = to;
    if (where > file->bytes || bytes > file->bytes - where)
        return false;
    while (bytes) {
        ssize_t n = pread(file->fd, at, bytes, (off_t)where);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* the file became shorter meanwhile */
            return false;
        at += n;
        where += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return true;
}

enum { NOTES_MAX = 1 << 16, PARTS_MAX = 4096 }; /* most bytes of notes, most parts of a file */

/* Finds the build id among an ELF file's notes, in hexadecimal digits; false if there is none. */
static bool find_id(const unsigned char *at, const unsigned char *end, char *out, size_t room) {
    while ((size_t)(end - at) >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, at, sizeof note);
        uint64_t name = (note.n_namesz + 3ull) & ~3ull, value = (note.n_descsz + 3ull) & ~3ull;
        if (name + value > (size_t)(end - at) - sizeof note)
            return false;
        const unsigned char *text = at + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(text, "GNU", 4) == 0) {
            for (unsigned k = 0; k < note.n_descsz && 2 * k + 3 <= room; k++)
                snprintf(out + 2 * k, 3, "%02x", text[name + k]);
            return true;
        }
        at = text + name + value;
    }
    return false;
}

/* The build id of a 64-bit ELF file; "" if it has none. */
static void build_id_of(const struct file *file, char *out, size_t room) {
    static unsigned char notes[NOTES_MAX];
    size_t left = sizeof notes;
    Elf64_Ehdr head;
    *out = 0;
    if (!read_at(file, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
        return;
    for (unsigned i = 0; i < head.e_phnum && i < PARTS_MAX; i++) {
        Elf64_Phdr part;
        if (!read_at(file, &part, sizeof part, head.e_phoff + (uint64_t)i * sizeof part))
            return;
        if (part.p_type != PT_NOTE || part.p_filesz > left ||
            !read_at(file, notes, part.p_filesz, part.p_offset))
            continue;
        left -= part.p_filesz;
        if (find_id(notes, notes + part.p_filesz, out, room))
            return;
    }
}

/* Opens the file if it is regular and unchanged since the recording; otherwise reports why, and
 * fd is below 0. Never waits for a pipe or device. */
static struct file open_file(struct player *p, const struct cst_module *module) {
    const char *path = cst_string(p->trace, module->file);
    const char *wanted = cst_string(p->trace, module->build_id);
    struct file file = {open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), 0};
    struct stat is;
    char id[80];
    if (file.fd < 0 || fstat(file.fd, &is) != 0) {
        notes_add(&p->obstacles, "%s: its code was launched, and it cannot be read: %s", path,
                  strerror(errno));
    } else if (!S_ISREG(is.st_mode)) {
        notes_add(&p->obstacles, "%s: its code was launched, and it is no regular file", path);
    } else {
        file.bytes = (uint64_t)is.st_size;
        build_id_of(&file, id, sizeof id);
        if (!*wanted || strcmp(id, wanted) == 0)
            return file;
        notes_add(&p->obstacles,
                  "%s: not the file that was recorded: its build id is %s and was %s: install that "
                  "version again",
                  path, *id ? id : "not there", wanted);
    }
    if (file.fd >= 0)
        close(file.fd);
    return (struct file){-1, 0};
}

static void *from_file(struct player *p, const struct cst_module *module) {
    const char *path = cst_string(p->trace, module->file);
    struct file file = open_file(p, module);
    char *bytes = NULL;
    if (file.fd < 0)
        return NULL;
    if (module->offset > file.bytes || module->bytes > file.bytes - module->offset ||
        !module->bytes)
        notes_add(&p->obstacles,
                  "%s: not the file that was recorded: it has %" PRIu64
                  " bytes, and the code lay at %" PRIu64 " to %" PRIu64,
                  path, file.bytes, module->offset, module->offset + module->bytes);
    else if ((bytes = room_for(p, module)) &&
             !read_at(&file, bytes, module->bytes, module->offset)) {
        notes_add(&p->obstacles, "%s: its code was launched, and it cannot be read whole", path);
        free(bytes);
        bytes = NULL;
    }
    close(file.fd);
    return bytes;
}

/* ---- all of them ---- */

static void find_image(struct player *p, const struct cst_module *module) {
    void *bytes = NULL;
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
        free(bytes);
        return;
    }
    if (!player_image_is_whole(bytes, module->bytes)) {
        const char *file = cst_string(p->trace, module->file);
        notes_add(&p->obstacles,
                  "%s%sthe code of module %u does not end within its %" PRIu64 " bytes", file,
                  *file ? ": " : "", module->id, module->bytes);
        free(bytes);
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
