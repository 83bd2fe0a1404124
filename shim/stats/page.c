/*
 * Makes, writes and reads the page's file. Neither side trusts the file.
 *
 * In the program's process, everything but cus_page_place runs on the watchdog's thread, without a
 * lock, an allocation or a stdio stream. The library keeps no descriptor, since the program could
 * close it, and touches no byte of the mapping. The file's room is reserved when it is made.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "shim/stats/page.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clean.h"
#include "shim/base/process.h"
#include "shim/base/process_rank.h"

_Static_assert(sizeof(struct cus_page) <= CUS_PAGE_BYTES, "the page is as large as it says");
_Static_assert(offsetof(struct cus_page, asked) % 4 == 0, "a futex is aligned");

enum { TRIES = 3000 /* reads while the library writes, which takes microseconds */ };

/* ---- where the page is ---- */

static bool is_private(const char *folder) {
    struct stat info;
    return *folder == '/' && strlen(folder) < CUS_PAGE_PATH - 48 && stat(folder, &info) == 0 &&
           S_ISDIR(info.st_mode) && info.st_uid == geteuid() && !(info.st_mode & 077);
}

unsigned cus_page_folders(char folders[2][CUS_PAGE_PATH]) {
    const char *own = secure_getenv("XDG_RUNTIME_DIR");
    unsigned n = 0;
    if (own && is_private(own))
        snprintf(folders[n++], CUS_PAGE_PATH, "%s", own);
    snprintf(folders[n++], CUS_PAGE_PATH, "/dev/shm");
    return n;
}

bool cus_page_path(const char *folder, unsigned uid, long pid, char path[CUS_PAGE_PATH]) {
    int bytes = snprintf(path, CUS_PAGE_PATH, "%s/cusplice-%u-%ld", folder, uid, pid);
    return bytes > 0 && bytes < CUS_PAGE_PATH;
}

/* ---- the library's side ---- */

static int make_file(const char *path) {
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
    int fd = cus_file_open(path, flags, 0600);
    struct stat info;
    /* In a folder that everybody may write, the sticky bit protects another user's file from
     * this unlink. */
    if (fd < 0 && errno == EEXIST && lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == geteuid() && unlink(path) == 0)
        fd = cus_file_open(path, flags, 0600);
    return fd;
}

static void fill_head(struct cus_page *page) {
    char exe[sizeof page->program];
    ssize_t bytes = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[bytes > 0 ? bytes : 0] = 0;
    const char *slash = strrchr(exe, '/');
    memcpy(page->magic, CUS_PAGE_MAGIC, sizeof CUS_PAGE_MAGIC);
    page->version = CUS_PAGE_VERSION;
    page->bytes = CUS_PAGE_BYTES;
    page->pid = (uint64_t)getpid();
    page->rank = (uint32_t)(cus_process_rank() + 1);
    page->start = cus_process_start(0);
    snprintf(page->program, sizeof page->program, "%s", slash ? slash + 1 : exe);
}

bool cus_page_place(char path[CUS_PAGE_PATH]) {
    char folders[2][CUS_PAGE_PATH];
    cus_page_folders(folders);
    return cus_page_path(folders[0], (unsigned)geteuid(), (long)getpid(), path);
}

static bool write_at(int fd, const void *from, size_t bytes, size_t offset) {
    return pwrite(fd, from, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Some umasks remove the user's own rights. */
static bool begin_file(int fd, struct cus_page_own *own) {
    struct cus_page head = {.seq = 0};
    fill_head(&head);
    return fchmod(fd, 0600) == 0 && posix_fallocate(fd, 0, CUS_PAGE_BYTES) == 0 &&
           write_at(fd, &head, sizeof head, 0) && cus_file_identify(fd, &own->id);
}

bool cus_page_make(struct cus_page_own *own, const char *path) {
    int fd = make_file(path);
    *own = (struct cus_page_own){.path = path};
    if (fd < 0)
        return false;
    char *page = MAP_FAILED;
    if (begin_file(fd, own))
        page = mmap(NULL, CUS_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) {
        unlink(path);
        return false;
    }
    madvise(page, CUS_PAGE_BYTES, MADV_DONTFORK);
    own->asked = (const uint32_t *)(const void *)(page + offsetof(struct cus_page, asked));
    return true;
}

void cus_page_give_up(struct cus_page_own *own) {
    if (own->asked)
        munmap((char *)(uintptr_t)own->asked - offsetof(struct cus_page, asked), CUS_PAGE_BYTES);
    own->asked = NULL;
}

bool cus_page_is_asked(struct cus_page_own *own) {
    const struct timespec now = {0, 0};
    if (!own->asked)
        return false;
    /* The kernel compares the value; the timeout is 0, so the call never waits. */
    if (syscall(SYS_futex, own->asked, FUTEX_WAIT, own->seen, &now, NULL, 0) == 0 ||
        errno == ETIMEDOUT || errno == EINTR)
        return false;
    if (errno == EAGAIN)
        return true;
    cus_page_give_up(own);
    return false;
}

static int open_again(const struct cus_page_own *own) {
    struct stat info;
    int fd = cus_file_open(own->path, O_RDWR | O_NOFOLLOW, 0);
    if (fd >= 0 && cus_file_is(fd, &own->id) && fstat(fd, &info) == 0 &&
        info.st_size == CUS_PAGE_BYTES)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

#define PUT(fd, field, from) write_at(fd, from, sizeof *(from), offsetof(struct cus_page, field))

void cus_page_answer(struct cus_page_own *own, const struct cus_page_facts *facts) {
    uint32_t asked, writing = own->seq | 1, written = writing + 1, answers = own->answers + 1;
    int fd = open_again(own);
    bool done = fd >= 0 &&
                pread(fd, &asked, sizeof asked, offsetof(struct cus_page, asked)) == sizeof asked &&
                PUT(fd, seq, &writing) && PUT(fd, facts, facts) && PUT(fd, seq, &written) &&
                PUT(fd, answers, &answers);
    if (fd >= 0)
        close(fd);
    if (!done) {
        cus_page_give_up(own);
        return;
    }
    own->seen = asked;
    own->seq = written;
    own->answers = answers;
}

/* ---- the viewer's side ---- */

int cus_page_open(const char *path, const char **why) {
    struct stat info;
    int fd = cus_file_open(path, O_RDWR | O_NOFOLLOW, 0);
    *why = NULL;
    if (fd < 0) {
        if (errno == ELOOP)
            *why = "is a link";
        else if (errno != ENOENT)
            *why = "cannot be opened";
        return -1;
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        *why = "is no file";
    else if (info.st_uid != geteuid())
        *why = "is another user's";
    else if (info.st_mode & 077)
        *why = "may be written or read by others";
    else if (info.st_size != CUS_PAGE_BYTES)
        *why = "has not the size of a page";
    if (!*why)
        return fd;
    close(fd);
    return -1;
}

static void clean(char *text, size_t bytes) {
    text[bytes - 1] = 0;
    cus_clean(text, strlen(text));
}

static bool read_at(int fd, void *to, size_t bytes, size_t offset) {
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

bool cus_page_read(int fd, struct cus_page *copy, const char **why) {
    const size_t seq_at = offsetof(struct cus_page, seq);
    *why = "cannot be read";
    uint32_t before, after = 1;
    for (int tries = 0; tries < TRIES; tries++) {
        if (!read_at(fd, &before, sizeof before, seq_at) || !read_at(fd, copy, sizeof *copy, 0) ||
            !read_at(fd, &after, sizeof after, seq_at))
            return false;
        if (before == after && !(after & 1))
            break;
        usleep(100);
    }
    *why = "is being written all the time";
    if (before != after || (after & 1))
        return false;
    *why = "is no page";
    if (memcmp(copy->magic, CUS_PAGE_MAGIC, sizeof CUS_PAGE_MAGIC) != 0)
        return false;
    *why = "is the page of another version of the library";
    if (copy->version != CUS_PAGE_VERSION || copy->bytes != CUS_PAGE_BYTES)
        return false;
    struct cus_page_facts *facts = &copy->facts;
    clean(copy->program, sizeof copy->program);
    clean(facts->mode, sizeof facts->mode);
    clean(facts->gpu, sizeof facts->gpu);
    if (facts->n_breaks > CUS_PAGE_BREAKS)
        facts->n_breaks = CUS_PAGE_BREAKS;
    for (unsigned i = 0; i < CUS_PAGE_BREAKS; i++) {
        clean(facts->breaks[i].name, sizeof facts->breaks[i].name);
        clean(facts->breaks[i].what, sizeof facts->breaks[i].what);
    }
    return true;
}

void cus_page_ask(int fd, const struct cus_page *copy) {
    uint32_t next = copy->asked + 1;
    ssize_t written = pwrite(fd, &next, sizeof next, offsetof(struct cus_page, asked));
    (void)written;
    /* The thread that answers may sleep without limit, so it is woken. The mapping only names
     * the futex and is never touched: the file may have been cut short. */
    char *page = mmap(NULL, CUS_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return;
    syscall(SYS_futex, page + offsetof(struct cus_page, asked), FUTEX_WAKE, 1, NULL, NULL, 0);
    munmap(page, CUS_PAGE_BYTES);
}
