/*
 * Finds the user's folder for caches. verb_run.c and verb_cache.c call it, on the launcher's one
 * thread. It makes no folder but that of all caches, and none in a folder of another user. The
 * library makes and judges the folder below it.
 */
#include "tools/cli/cache_home.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/config.h"
#include "tools/cli/verb.h"

static void notice(void *said, const struct cus_setting *setting) {
    if (!*setting->section && strcmp(setting->key, "cache_dir") == 0)
        *(bool *)said = true;
}

/* True: a setting says where the cache is, or, by an empty value, that there is none. */
static bool is_said(void) {
    bool said = false;
    for (int source = CUS_SOURCE_LAUNCHER + 1; source < CUS_SOURCES; source++)
        cus_config_read((enum cus_source)source, notice, NULL, &said);
    return said;
}

/* The folder of all caches of the user. The specification has a path that is not absolute
 * ignored. False: there is none. */
static bool find_base(char *out, size_t bytes) {
    const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int used = 0;
    if (xdg && *xdg == '/')
        used = snprintf(out, bytes, "%s", xdg);
    else if (home && *home == '/')
        used = snprintf(out, bytes, "%s/.cache", home);
    while (used > 1 && (size_t)used < bytes && out[used - 1] == '/')
        out[--used] = 0; /* so that the name behind the last slash is that of the folder */
    return used > 0 && (size_t)used < bytes;
}

static bool name_home(const char *base, char *out, size_t bytes) {
    return (size_t)snprintf(out, bytes, "%s/cusplice", base) < bytes;
}

bool cli_cache_home(char *out, size_t bytes) {
    char base[PATH_MAX];
    return !is_said() && find_base(base, sizeof base) && name_home(base, out, bytes);
}

static bool is_ours(const struct stat *info) {
    return info->st_uid == geteuid() || info->st_uid == 0;
}

/* Root makes nothing in the home of another user, who could not use it. */
static const char *make(const char *base) {
    char above[PATH_MAX];
    struct stat info;
    snprintf(above, sizeof above, "%s", base);
    *(strrchr(above, '/') + 1) = 0;
    if (stat(above, &info) != 0)
        return strerror(errno);
    if (!is_ours(&info))
        return "the folder above it is another user's";
    return mkdir(base, 0700) == 0 || errno == EEXIST ? NULL : strerror(errno);
}

/* NULL: the folder is there and the user's, maybe since now. Else what is wrong with it. */
static const char *prepare(const char *base) {
    struct stat link, info;
    const char *wrong = NULL;
    if (lstat(base, &link) != 0)
        wrong = errno == ENOENT ? make(base) : strerror(errno);
    else if (!is_ours(&link))
        wrong = "it is another user's";
    if (wrong)
        return wrong;
    if (stat(base, &info) != 0)
        return strerror(errno);
    if (!S_ISDIR(info.st_mode))
        return "it is no folder";
    return info.st_uid == geteuid() ? NULL : "it is another user's";
}

void cli_cache_offer(bool wanted, bool why) {
    char base[PATH_MAX], home[PATH_MAX + 16];
    unsetenv(CUS_CACHE_OFFERED); /* an outer launcher's */
    if (!wanted || is_said() || !find_base(base, sizeof base) ||
        !name_home(base, home, sizeof home))
        return;
    const char *wrong = prepare(base);
    if (!wrong)
        setenv(CUS_CACHE_OFFERED, home, 1);
    else if (why)
        cli_say("nothing is kept for later runs: %s: %s", base, wrong);
}
