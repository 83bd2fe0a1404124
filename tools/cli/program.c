/*
 * Looks into a program's file: ELF class, machine, interpreter, setuid bits, capabilities.
 * handshake.c, outputs.c, verb_bench.c and tools/doctor call it. It only reads, and never runs the
 * program.
 */
#include "tools/cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool cli_program_find(const char *name, char *out, size_t bytes) {
    if (strchr(name, '/')) {
        snprintf(out, bytes, "%s", name);
        return is_program(out);
    }
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/bin:/usr/bin"; at; at = strchr(at, ':')) {
        at += *at == ':';
        int part = (int)strcspn(at, ":");
        snprintf(out, bytes, "%.*s%s%s", part, at, part ? "/" : "", name);
        if (is_program(out))
            return true;
        if (!*at)
            break;
    }
    return false;
}

/* #! line: the interpreter, or with env(1) the program that it would start. False: no script. */
static bool interpreter_of(const char *head, char *out, size_t bytes) {
    char line[256], path[PATH_MAX];
    if (strncmp(head, "#!", 2) != 0)
        return false;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(head + 2, "\n"), head + 2);
    char *save, *word = strtok_r(line, " \t", &save);
    if (!word)
        return false;
    const char *base = strrchr(word, '/');
    if (base && strcmp(base, "/env") == 0)
        while ((word = strtok_r(NULL, " \t", &save)) && (*word == '-' || strchr(word, '=')))
            ;
    if (!word || !cli_program_find(word, path, sizeof path))
        return false;
    snprintf(out, bytes, "%s", path);
    return true;
}

bool cli_program_interpreter(char *path, size_t bytes) {
    for (int depth = 0; depth < 4; depth++) {
        char head[256] = "", next[PATH_MAX];
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t got = fd < 0 ? 0 : pread(fd, head, sizeof head - 1, 0);
        if (fd >= 0)
            close(fd);
        if (got < 2 || strncmp(head, "#!", 2) != 0)
            return true;
        if (!interpreter_of(head, next, sizeof next))
            return false;
        snprintf(path, bytes, "%s", next);
    }
    return false;
}

/* Whether the file asks for a dynamic loader; `fd` is at a 64-bit ELF file. */
static bool has_loader(int fd, const Elf64_Ehdr *head) {
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head->e_phoff + (uint64_t)i * head->e_phentsize);
        if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part)
            return true; /* no verdict */
        if (part.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static const char *elf_obstacle(int fd, const char *head, size_t got) {
    Elf64_Ehdr elf, own;
    if (got < sizeof elf || memcmp(head, ELFMAG, SELFMAG) != 0)
        return NULL;
    memcpy(&elf, head, sizeof elf);
    if (elf.e_ident[EI_CLASS] == ELFCLASS32)
        return "it is a 32-bit program and libcusplice.so is a 64-bit library";
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self >= 0) {
        bool other = pread(self, &own, sizeof own, 0) == (ssize_t)sizeof own &&
                     own.e_machine != elf.e_machine;
        close(self);
        if (other)
            return "it is a program for another kind of processor";
    }
    return has_loader(fd, &elf)
               ? NULL
               : "it is statically linked, so that no dynamic loader reads LD_PRELOAD";
}

static const char *privilege_obstacle(int fd) {
    struct stat info;
    char value[64];
    if (fstat(fd, &info) != 0)
        return NULL;
    if (((info.st_mode & S_ISUID) && info.st_uid != geteuid()) ||
        ((info.st_mode & S_ISGID) && info.st_gid != getegid()))
        return "it is setuid or setgid, and the dynamic loader preloads no other library there";
    if (geteuid() != 0 && fgetxattr(fd, "security.capability", value, sizeof value) > 0)
        return "it has file capabilities, and the dynamic loader preloads no other library there";
    return NULL;
}

void cli_program_obstacle(const char *name, char *out, size_t bytes) {
    char path[PATH_MAX];
    *out = 0;
    bool found = cli_program_find(name, path, sizeof path);
    for (int depth = 0; found && depth < 4; depth++) {
        char head[256] = "", next[PATH_MAX];
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            return; /* may be executed, may not be read */
        ssize_t got = pread(fd, head, sizeof head - 1, 0);
        found = got > 0 && interpreter_of(head, next, sizeof next);
        const char *why = NULL;
        if (!found && got > 0) {
            why = elf_obstacle(fd, head, (size_t)got);
            if (!why)
                why = privilege_obstacle(fd);
        }
        close(fd);
        if (why)
            snprintf(out, bytes, "%s: %s", path, why);
        if (found)
            snprintf(path, sizeof path, "%s", next);
    }
}
