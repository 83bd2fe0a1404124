/*
 * The page by which a process shows what the library does in it: one file that the library makes
 * and writes (stream/live.c) and `cusplice top` reads (tools/cli). This header is all that they
 * share.
 *
 * The file is FOLDER/cusplice-UID-PID with mode 0600, CUS_PAGE_BYTES long. FOLDER is
 * $XDG_RUNTIME_DIR where that is a folder of the user's own that nobody else may enter, else
 * /dev/shm. A viewer asks by moving `asked` and waking it as a futex; the library answers by
 * writing the facts and moving `answers`. Both sides read and write the file by pread and pwrite:
 * one that somebody cuts short ends nobody. Nobody asks: nothing is written. `seq` is odd while
 * facts are written; who reads it before and after, and finds the same even number, has facts of
 * one moment.
 *
 * Neither side believes the other: the library reads `asked` alone, as a number that moves or does
 * not; a viewer copies the page and looks at nothing but the copy (cus_page_sound).
 */
#ifndef CUSPLICE_STATS_PAGE_H
#define CUSPLICE_STATS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/file.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUS_PAGE_MAGIC "cusplice live\n"

enum {
    CUS_PAGE_VERSION = 1,
    CUS_PAGE_BYTES = 8192,
    CUS_PAGE_BREAKS = 10,
    CUS_PAGE_NAME = 96,
    CUS_PAGE_WHAT = 160,
    CUS_PAGE_PATH = 512,
};

struct cus_page_break {
    uint64_t launches, runs; /* as in report.h */
    char name[CUS_PAGE_NAME];
    char what[CUS_PAGE_WHAT];
};

struct cus_page_facts {
    uint64_t at_ns; /* CLOCK_MONOTONIC of the process when the facts were gathered */
    uint64_t ops, in_graphs, graph_launches, steps, built, patched_nodes;
    uint64_t graph_bytes, graph_bytes_most, graph_bytes_limit; /* estimates */
    /* Host time of a launch issued by itself and of a graph launch, patching included: medians of
     * the last ones that were timed; 0: none was. */
    uint64_t launch_ns, graph_ns;
    uint32_t n_breaks, more_breaks;
    char mode[32];
    struct cus_page_break breaks[CUS_PAGE_BREAKS];
};

struct cus_page {
    char magic[16];
    uint32_t version, bytes;
    uint64_t pid, start; /* cus_process_start */
    char program[256];
    uint32_t asked;   /* moved by viewers; a futex */
    uint32_t answers; /* moved behind the facts, by the library */
    uint32_t seq;
    uint32_t unused;
    struct cus_page_facts facts;
};

/* The folders in which a page may be: writes up to two, best first, and returns how many. */
unsigned cus_page_folders(char folders[2][CUS_PAGE_PATH]);
/* FOLDER/cusplice-UID-PID. False where it does not fit. */
bool cus_page_path(const char *folder, unsigned uid, long pid, char path[CUS_PAGE_PATH]);

/* ---- the library's side ---- */

/* Where the page of this process is to be: in the best folder. Reads the environment, hence runs on
 * a thread of the program: others may not, while the program changes it. */
bool cus_page_place(char path[CUS_PAGE_PATH]);
/* The page of this process, as its one thread knows it. */
struct cus_page_own {
    const char *path;
    struct cus_file_id id;
    /* `asked` of the file, as a futex. Never read here, but by the kernel: a load from a file that
     * somebody cut short ends the process. NULL: there is no page. */
    const uint32_t *asked;
    uint32_t seen;         /* what was asked last and answered */
    uint32_t answers, seq; /* as they stand in the file */
};

/* Makes the page of this process at `path`, which must stay as long as the page; forked children do
 * not have it. On a thread that blocks SIGXFSZ. A file of that name that is the user's is taken for
 * one left by an older process and replaced; a link or somebody else's file is left, and there is
 * no page: false. */
bool cus_page_make(struct cus_page_own *own, const char *path);
/* Is an answer due? A page whose file was cut short is given up. */
bool cus_page_is_asked(struct cus_page_own *own);
/* Writes the facts into the file and says that they are there: whatever was asked until then is
 * answered. A file that is not the one that was made is left alone, and the page given up. */
void cus_page_answer(struct cus_page_own *own, const struct cus_page_facts *facts);
/* There is no page any more. */
void cus_page_give_up(struct cus_page_own *own);

/* ---- the viewer's side ---- */

/* Opens the page at `path` for reading and asking. -1, and `*why` says why not: it is not there
 * (then *why is NULL), or it is no page that this user's process may have made. */
int cus_page_open(const char *path, const char **why);
/* Copies the page. False where it is being written each time, or is no sound page: `*why`. Whatever
 * the file held, all texts of the copy end and hold nothing but printable characters, and counts
 * are within bounds. */
bool cus_page_read(int fd, struct cus_page *copy, const char **why);
/* Asks for an answer beyond the one in `copy`. */
void cus_page_ask(int fd, const struct cus_page *copy);

#ifdef __cplusplus
}
#endif

#endif
