/*
 * The page: a file in which a process shows what the library does. The library makes and writes it
 * (stream/live.c), and `cusplice top` reads it (tools/cli). The two share only this header. Neither
 * side trusts the other: the library reads only `asked`, as a number that moves or does not; a
 * viewer copies the page and uses only the copy (cus_page_read).
 */
#ifndef CUSPLICE_STATS_PAGE_H
#define CUSPLICE_STATS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/file.h"
#include "shim/stats/gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUS_PAGE_MAGIC "cusplice live\n"

enum {
    CUS_PAGE_VERSION = 2,
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
    uint64_t at_ns; /* CLOCK_MONOTONIC when the facts were gathered */
    uint64_t ops, in_graphs, graph_launches, steps, built, patched_nodes;
    uint64_t graph_bytes, graph_bytes_most, graph_bytes_limit; /* estimates */
    /* Host time of a launch issued by itself, and of a graph launch with its patching. Each is
     * the median of the last ones timed; 0: none was timed. */
    uint64_t launch_ns, graph_ns;
    uint32_t n_breaks, more_breaks;
    char mode[32];
    char gpu[CUS_GPU_TEXT];
    struct cus_page_break breaks[CUS_PAGE_BREAKS];
};

/*
 * The contents of the file, and how both sides use it:
 *
 *   file    FOLDER/cusplice-UID-PID, mode 0600, CUS_PAGE_BYTES long
 *   FOLDER  $XDG_RUNTIME_DIR if it is the user's own and nobody else may enter it, else /dev/shm
 *   asking  a viewer moves `asked` and wakes it as a futex
 *   answer  the library writes the facts, then moves `answers`; without viewers nothing is written
 *   seq     odd while facts are written. A reader that finds the same even number before and
 *           after its read has facts of one moment
 *   access  pread and pwrite on both sides, so that a file cut short ends no process
 */
struct cus_page {
    char magic[16];
    uint32_t version, bytes;
    uint64_t pid, start; /* cus_process_start */
    char program[256];
    uint32_t asked;   /* viewers move it; a futex */
    uint32_t answers; /* the library moves it after the facts */
    uint32_t seq;
    uint32_t rank; /* of the process + 1; 0: none is known */
    struct cus_page_facts facts;
};

/* Writes the one or two folders that may hold a page, best first. Returns how many. */
unsigned cus_page_folders(char folders[2][CUS_PAGE_PATH]);
/* FOLDER/cusplice-UID-PID. False: it does not fit. */
bool cus_page_path(const char *folder, unsigned uid, long pid, char path[CUS_PAGE_PATH]);

/* ---- the library's side ---- */

/* Writes the path of this process's page, in the best folder. Reads the environment, so it must
 * run on a thread of the program: another thread must not read it while the program changes it. */
bool cus_page_place(char path[CUS_PAGE_PATH]);
/* The page of this process; one thread uses it. */
struct cus_page_own {
    const char *path;
    struct cus_file_id id;
    /* The file's `asked`, as a futex. Only the kernel reads it: a load from a file that was cut
     * short would end the process. NULL: there is no page. */
    const uint32_t *asked;
    uint32_t seen;         /* the last request that was answered */
    uint32_t answers, seq; /* as in the file */
};

/* Makes the page of this process at `path`, which must stay valid as long as the page. Forked
 * children do not have the page. For a thread that blocks SIGXFSZ. A file of this name that
 * belongs to the user counts as left by an older process and is replaced. A link or another
 * user's file stays, and there is no page: false. */
bool cus_page_make(struct cus_page_own *own, const char *path);
/* True: an answer is due. If the page's file was cut short, the page is given up. */
bool cus_page_is_asked(struct cus_page_own *own);
/* Writes the facts into the file and announces them, which answers all requests until then. If
 * the file is not the one that was made, it stays unchanged and the page is given up. */
void cus_page_answer(struct cus_page_own *own, const struct cus_page_facts *facts);
/* Gives the page up: the library has none any more. */
void cus_page_give_up(struct cus_page_own *own);

/* ---- the viewer's side ---- */

/* Opens the page at `path` for reading and asking. -1: the page does not exist (*why is NULL),
 * or it is no page that this user's process may have made (*why). */
int cus_page_open(const char *path, const char **why);
/* Copies the page. False: it is being written at each try, or is no valid page (*why). Whatever
 * the file held, each text of the copy ends and is printable, and each count is within bounds. */
bool cus_page_read(int fd, struct cus_page *copy, const char **why);
/* Asks for an answer newer than the one in `copy`. */
void cus_page_ask(int fd, const struct cus_page *copy);

#ifdef __cplusplus
}
#endif

#endif
