/*
 * Reads the rank of this process once and keeps it, so that the process's files have one name
 * however the program changes its environment. Any thread after the first call; no lock.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "shim/base/process_rank.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Ranks within the whole run come first, that within a machine last. torchrun's stands before
 * Slurm's: srun then started torchrun, and all its processes have srun's number. */
static const char *const variables[] = {"RANK",      "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK",  "SLURM_PROCID",         "VLLM_DP_RANK",
                                        "LOCAL_RANK"};

/* -1: no number from 0 to CUS_PROCESS_RANK_MAX. Other text never gets into a file's name. */
static int number_of(const char *text) {
    size_t digits = text ? strspn(text, "0123456789") : 0;
    return digits && digits <= 6 && !text[digits] ? atoi(text) : -1;
}

static int read_rank(void) {
    int rank = -1;
    for (unsigned i = 0; rank < 0 && i < sizeof variables / sizeof *variables; i++)
        rank = number_of(secure_getenv(variables[i]));
    return rank;
}

/* The process and its rank + 1 in one word: a forked child reads its own. */
static uint64_t kept; /* atomic */

int cus_process_rank(void) {
    int saved = errno;
    uint64_t pid = (uint64_t)getpid(), known = __atomic_load_n(&kept, __ATOMIC_RELAXED);
    if (known >> 32 != pid) {
        known = pid << 32 | (uint32_t)(read_rank() + 1);
        __atomic_store_n(&kept, known, __ATOMIC_RELAXED);
    }
    errno = saved;
    return (int)(uint32_t)known - 1;
}

void cus_process_name(int rank, long pid, char out[CUS_PROCESS_NAME]) {
    if (rank >= 0)
        snprintf(out, CUS_PROCESS_NAME, "rank-%d.pid-%ld", rank, pid);
    else
        snprintf(out, CUS_PROCESS_NAME, "pid-%ld", pid);
}

/* Not isalnum, which asks the program's locale. */
static bool may_stand(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || (c == '.' && !first);
}

void cus_process_host(char out[CUS_PROCESS_HOST]) {
    struct utsname self;
    const char *name = uname(&self) == 0 && *self.nodename ? self.nodename : "host";
    size_t bytes = strnlen(name, CUS_PROCESS_HOST - 1);
    for (size_t i = 0; i < bytes; i++)
        out[i] = may_stand(name[i], i == 0) ? name[i] : '-';
    out[bytes] = 0;
}
