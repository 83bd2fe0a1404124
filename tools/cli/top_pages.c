/*
 * Finds the pages of this user's processes and compares two looks at one. The views of `cusplice
 * top` call it, on one thread. It trusts no page, and removes those of dead processes.
 */
#include "tools/cli/top.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/process.h"
#include "tools/cli/screen.h"
#include "tools/cli/verb.h"

/* ---- pages ---- */

/* The number behind "cusplice-UID-", or 0. */
static long pid_of(const char *name) {
    char head[40];
    int bytes = snprintf(head, sizeof head, "cusplice-%u-", (unsigned)geteuid());
    if (strncmp(name, head, (size_t)bytes) != 0)
        return 0;
    name += bytes;
    size_t digits = strspn(name, "0123456789");
    return digits && digits < 11 && !name[digits] ? atol(name) : 0;
}

bool cli_top_is_alive(long pid, const struct cus_page *page) {
    uint64_t start = cus_process_start(pid);
    return start && start == page->start && page->pid == (uint64_t)pid;
}

int cli_top_open(const char *path, struct cus_page *copy, const char **why) {
    int fd = cus_page_open(path, why);
    if (fd >= 0 && !cus_page_read(fd, copy, why)) {
        close(fd);
        return -1;
    }
    return fd;
}

void cli_top_remove(const char *path, int fd) {
    struct stat opened, there;
    if (fstat(fd, &opened) == 0 && lstat(path, &there) == 0 && opened.st_dev == there.st_dev &&
        opened.st_ino == there.st_ino)
        unlink(path);
}

/* A file of this user's, by its name that of a process that is no more, which was ended before it
 * had made a page of it. */
static bool remove_rest(long pid, const char *path) {
    struct stat info;
    return !cus_process_start(pid) && lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           info.st_uid == geteuid() && unlink(path) == 0;
}

void cli_top_forget(long pid) {
    char folders[2][CUS_PAGE_PATH], path[CUS_PAGE_PATH];
    unsigned n_folders = cus_page_folders(folders);
    for (unsigned i = 0; i < n_folders; i++) {
        struct cus_page copy;
        const char *why = NULL;
        if (!cus_page_path(folders[i], (unsigned)geteuid(), pid, path))
            continue;
        int fd = cli_top_open(path, &copy, &why);
        if (fd >= 0 && !cli_top_is_alive(pid, &copy))
            cli_top_remove(path, fd);
        if (fd >= 0)
            close(fd);
        else if (why)
            remove_rest(pid, path);
    }
}

unsigned cli_top_list(struct cli_top_found *found) {
    char folders[2][CUS_PAGE_PATH];
    unsigned n = 0, n_folders = cus_page_folders(folders);
    for (unsigned i = 0; i < n_folders; i++) {
        DIR *folder = opendir(folders[i]);
        struct dirent *entry;
        while (folder && n < CLI_TOP_PAGES && (entry = readdir(folder))) {
            struct cus_page copy;
            const char *why;
            struct cli_top_found *one = &found[n];
            one->pid = pid_of(entry->d_name);
            if (!one->pid || !cus_page_path(folders[i], (unsigned)geteuid(), one->pid, one->path))
                continue;
            int fd = cli_top_open(one->path, &copy, &why);
            if (fd < 0) {
                if (why && !remove_rest(one->pid, one->path))
                    cli_say("%s %s: left alone", one->path, why);
                continue;
            }
            if (cli_top_is_alive(one->pid, &copy))
                n++;
            else
                cli_top_remove(one->path, fd);
            close(fd);
        }
        if (folder)
            closedir(folder);
    }
    return n;
}

/* ---- rates ---- */

double cli_top_saved(const struct cus_page_facts *facts, uint64_t in_graphs, uint64_t launches) {
    return ((double)in_graphs * (double)facts->launch_ns -
            (double)launches * (double)facts->graph_ns) /
           1e9;
}

double cli_top_share(uint64_t in_graphs, uint64_t ops) {
    return ops ? 100.0 * (double)in_graphs / (double)ops : 0;
}

const char *cli_top_colour(double share) {
    return share >= 80 ? CLI_GREEN : share >= 20 ? CLI_YELLOW : CLI_RED;
}

/* Counters of a process only grow; what a page says may do anything. */
static uint64_t grown(uint64_t now, uint64_t before) {
    return now > before ? now - before : 0;
}

struct cli_top_rates cli_top_rates(const struct cus_page_facts *now,
                                   const struct cus_page_facts *before) {
    struct cli_top_rates rates = {0, 0, 0, 0, 0};
    if (!before->at_ns || now->at_ns <= before->at_ns)
        return rates;
    rates.seconds = (double)(now->at_ns - before->at_ns) / 1e9;
    uint64_t ops = grown(now->ops, before->ops);
    uint64_t in_graphs = grown(now->in_graphs, before->in_graphs);
    uint64_t graphs = grown(now->graph_launches, before->graph_launches);
    rates.ops = (double)ops / rates.seconds;
    rates.graphs = (double)graphs / rates.seconds;
    rates.share = cli_top_share(in_graphs, ops);
    rates.saved = cli_top_saved(now, in_graphs, graphs) / rates.seconds;
    return rates;
}
