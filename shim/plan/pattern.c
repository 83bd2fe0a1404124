/*
 * Patterns of rules. Compiling allocates and runs when rules are loaded. Matching runs once per
 * function, on the thread that launches the function first. It takes no lock: a compiled regex_t is
 * only read, and glibc locks it inside.
 */
#include "shim/plan/pattern.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/mem.h"
#include "shim/plan/name.h"

enum target { TARGET_BASE, TARGET_REGEX, TARGET_MANGLED, TARGET_LIB, TARGET_API };

struct cus_pattern {
    enum target target;
    const char *body; /* in `text`, behind the prefix */
    char *text;
    regex_t regex; /* used by TARGET_REGEX only */
};

/* ---- globs ---- */

bool cus_glob_element(const char *glob, unsigned char c, const char **next) {
    *next = glob + 1;
    if (*glob == '?')
        return true;
    if (*glob == '\\') {
        *next = glob[1] ? glob + 2 : NULL;
        return *next && (unsigned char)glob[1] == c;
    }
    if (*glob != '[')
        return (unsigned char)*glob == c;
    const char *at = glob + 1;
    bool not = *at == '!' || *at == '^', found = false;
    at += not ;
    const char *first = at;
    for (; *at && (*at != ']' || at == first); at++) {
        unsigned char low = (unsigned char)*at, high = low;
        if (at[1] == '-' && at[2] && at[2] != ']') {
            high = (unsigned char)at[2];
            at += 2;
        }
        found |= low <= c && c <= high;
    }
    *next = *at ? at + 1 : NULL;
    return *next && found != not ;
}

bool cus_glob_matches(const char *glob, const char *name) {
    /* The last star, and where the text behind it begins. Going back to this star alone is enough,
     * so time is at most the product of both lengths. */
    const char *star = NULL, *star_name = NULL;
    for (;;) {
        const char *next = NULL;
        if (*glob == '*') {
            star = ++glob;
            star_name = name;
        } else if (!*glob && !*name) {
            return true;
        } else if (*glob && *name && cus_glob_element(glob, (unsigned char)*name, &next)) {
            glob = next;
            name++;
        } else if (star && *star_name) {
            glob = star;
            name = ++star_name;
        } else {
            return false;
        }
    }
}

static const char *glob_error(const char *glob) {
    if (!*glob)
        return "the pattern is empty";
    while (*glob) {
        const char *next;
        if (*glob == '*') {
            glob++;
            continue;
        }
        cus_glob_element(glob, 0, &next);
        if (!next)
            return *glob == '[' ? "a [ without its ]" : "nothing follows the last backslash";
        glob = next;
    }
    return NULL;
}

/* ---- regular expressions ---- */

/*
 * The C library copies what + or {n,m} repeats, so a few nested ones need any amount of memory.
 * Back references need any amount of time. A rule must not do that to the program that loads it, so
 * the size is computed first.
 */
enum { REGEX_DEPTH_MAX = 32, REGEX_SIZE_MAX = 1000 };

/* How many copies the text behind a { asks for. *at ends at its last character. */
static unsigned long copies(const char **at) {
    unsigned long most = 0, number = 0;
    const char *c = *at + 1;
    for (; *c && *c != '}'; c++) {
        number = *c >= '0' && *c <= '9' && number <= REGEX_SIZE_MAX
                     ? number * 10 + (unsigned long)(*c - '0')
                     : 0;
        most = number > most ? number : most;
    }
    *at = *c ? c : c - 1;
    return most + 1;
}

static const char *set_end(const char *at) {
    const char *c = at + 1 + (at[1] == '^');
    c += *c == ']';
    while (*c && *c != ']')
        c++;
    return *c ? c : c - 1;
}

/* Can a part match the empty text? If such a part is repeated, the C library tries the same ways
 * again and again: a line of stars takes it hours. */
struct emptiness {
    bool before[REGEX_DEPTH_MAX + 1]; /* all parts of this branch before the last one */
    bool branch[REGEX_DEPTH_MAX + 1]; /* a branch before this one */
    bool last;                        /* the last part */
};

static void next_part(struct emptiness *empty, unsigned depth, bool last) {
    empty->before[depth] &= empty->last;
    empty->last = last;
}

/* Follows a special character of a group at `depth`. False: it repeats a part that may be empty. */
static bool follow_emptiness(struct emptiness *empty, const char *at, unsigned depth) {
    switch (*at) {
    case '(':
        next_part(empty, depth, true);
        if (depth < REGEX_DEPTH_MAX) {
            empty->before[depth + 1] = true;
            empty->branch[depth + 1] = false;
        }
        return true;
    case ')':
        empty->last = (empty->before[depth] && empty->last) || empty->branch[depth];
        return true;
    case '|':
        empty->branch[depth] |= empty->before[depth] && empty->last;
        empty->before[depth] = empty->last = true;
        return true;
    case '^':
    case '$':
        next_part(empty, depth, true);
        return true;
    default: { /* a repetition */
        bool twice = empty->last;
        if (*at == '*' || *at == '?' || (*at == '{' && (at[1] < '1' || at[1] > '9')))
            empty->last = true;
        return !twice;
    }
    }
}

static const char *regex_error(const char *regex) {
    unsigned long size[REGEX_DEPTH_MAX + 1] = {0}, last = 0;
    struct emptiness empty = {.before = {true}, .last = true};
    unsigned depth = 0;
    for (const char *at = regex; *at; at++) {
        if (strchr("()|^$*+?{", *at) && !(*at == ')' && depth == 0)) {
            if (!follow_emptiness(&empty, at, depth))
                return "it repeats what may be empty already (** is such a case)";
        } else {
            next_part(&empty, depth, false);
        }
        unsigned long factor = 1;
        if (*at == '\\' && at[1]) {
            at++;
            if (*at >= '1' && *at <= '9')
                return "references back are not for rules";
            size[depth] += last = 1;
        } else if (*at == '[') {
            at = set_end(at);
            size[depth] += last = 1;
        } else if (*at == '(') {
            if (depth == REGEX_DEPTH_MAX)
                return "too many groups in each other";
            size[++depth] = 0;
        } else if (*at == ')' && depth > 0) {
            last = size[depth--] + 1;
            size[depth] += last;
        } else if (*at == '+' || *at == '{') {
            factor = *at == '+' ? 2 : copies(&at);
            size[depth] += last * (factor - 1);
            last *= factor;
        } else if (*at != '*' && *at != '?') {
            size[depth] += last = 1;
        }
        if (size[depth] > REGEX_SIZE_MAX) /* no part is larger than its group */
            return "the expression repeats too much";
    }
    return NULL;
}

/* ---- patterns ---- */

static const char *behind(const char *text, const char *prefix) {
    size_t bytes = strlen(prefix);
    return strncmp(text, prefix, bytes) == 0 ? text + bytes : NULL;
}

/* The prefix of a pattern, by target; a base-name pattern has none. */
static const char *const prefixes[] = {
    [TARGET_REGEX] = "re:",
    [TARGET_MANGLED] = "mangled:",
    [TARGET_LIB] = "lib:",
    [TARGET_API] = "api:",
};

static void find_target(struct cus_pattern *pattern) {
    pattern->target = TARGET_BASE;
    pattern->body = pattern->text;
    for (unsigned i = TARGET_REGEX; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *body = behind(pattern->text, prefixes[i]);
        if (body) {
            pattern->target = (enum target)i;
            pattern->body = body;
        }
    }
}

static bool compile(struct cus_pattern *pattern, char *error, size_t bytes) {
    find_target(pattern);
    const char *body = pattern->body;
    bool regex = pattern->target == TARGET_REGEX && *body;
    const char *wrong = regex ? regex_error(body) : glob_error(body);
    if (!wrong && pattern->target == TARGET_LIB && strchr(body, '/'))
        wrong = "a library is named by its file name, without folders";
    if (!wrong && regex) {
        int code = regcomp(&pattern->regex, body, REG_EXTENDED | REG_NOSUB);
        if (code)
            regerror(code, &pattern->regex, error, bytes);
        return code == 0;
    }
    if (wrong)
        snprintf(error, bytes, "%s", wrong);
    return !wrong;
}

struct cus_pattern *cus_pattern_new(const char *text, char *error, size_t error_bytes) {
    struct cus_pattern *pattern = cus_mem_alloc(sizeof *pattern);
    snprintf(error, error_bytes, "no memory");
    if (pattern && (pattern->text = cus_mem_text(text)) && compile(pattern, error, error_bytes))
        return pattern;
    if (pattern)
        cus_mem_free(pattern->text);
    cus_mem_free(pattern);
    return NULL;
}

void cus_pattern_free(struct cus_pattern *pattern) {
    if (!pattern)
        return;
    if (pattern->target == TARGET_REGEX)
        regfree(&pattern->regex);
    cus_mem_free(pattern->text);
    cus_mem_free(pattern);
}

bool cus_pattern_matches(const struct cus_pattern *pattern, const char *mangled) {
    char name[1024];
    switch (pattern->target) {
    case TARGET_MANGLED:
        return cus_glob_matches(pattern->body, mangled);
    case TARGET_REGEX:
        cus_name_qualified(mangled, name, sizeof name);
        if (regexec(&pattern->regex, name, 0, NULL, 0) == 0)
            return true;
        cus_name_base(mangled, name, sizeof name);
        return regexec(&pattern->regex, name, 0, NULL, 0) == 0;
    case TARGET_BASE:
        cus_name_base(mangled, name, sizeof name);
        return cus_glob_matches(pattern->body, name);
    case TARGET_LIB:
    case TARGET_API:
        break;
    }
    return false;
}

bool cus_pattern_matches_names(const struct cus_pattern *pattern, const char *base,
                               const char *qualified) {
    if (pattern->target == TARGET_REGEX)
        return regexec(&pattern->regex, qualified, 0, NULL, 0) == 0 ||
               regexec(&pattern->regex, base, 0, NULL, 0) == 0;
    return pattern->target == TARGET_BASE && cus_glob_matches(pattern->body, base);
}

bool cus_pattern_matches_lib(const struct cus_pattern *pattern, const char *file_name) {
    return pattern->target == TARGET_LIB && cus_glob_matches(pattern->body, file_name);
}

/* A call has several symbols: cuMemcpyDtoDAsync has the suffix _v2, _ptsz or _v2_ptsz, depending on
 * the header that the program was compiled with. */
bool cus_pattern_matches_api(const struct cus_pattern *pattern, const char *symbol) {
    char name[128];
    size_t bytes = strlen(symbol), whole = bytes;
    if (pattern->target != TARGET_API || bytes >= sizeof name)
        return false;
    bool twin = bytes > 5 && (strcmp(symbol + bytes - 5, "_ptsz") == 0 ||
                              strcmp(symbol + bytes - 5, "_ptds") == 0);
    bytes -= twin ? 5 : 0;
    bool version = bytes > 3 && strncmp(symbol + bytes - 3, "_v", 2) == 0 &&
                   symbol[bytes - 1] >= '0' && symbol[bytes - 1] <= '9';
    for (int form = 0; form < 4; form++) {
        bool no_twin = form & 1, no_version = form & 2;
        size_t keep = bytes - (version && no_version ? 3 : 0), tail = no_twin ? 0 : whole - bytes;
        memcpy(name, symbol, keep);
        memcpy(name + keep, symbol + bytes, tail);
        name[keep + tail] = 0;
        if (cus_glob_matches(pattern->body, name))
            return true;
    }
    return false;
}

enum cus_pattern_sort cus_pattern_sort_of(const struct cus_pattern *pattern) {
    return pattern->target == TARGET_LIB   ? CUS_PATTERN_LIB
           : pattern->target == TARGET_API ? CUS_PATTERN_API
                                           : CUS_PATTERN_NAME;
}

const char *cus_pattern_text(const struct cus_pattern *pattern) {
    return pattern->text;
}
