/*
 * Patterns that are well formed and match nothing: a comment behind the pattern, a name with its
 * namespaces, a mangled one. rules.c asks when rules are loaded. No lock; allocates to try what it
 * offers.
 *
 * PTX allows letters, digits, _, $ and % in the name of a kernel. This file lets . - @ and bytes
 * above 127 pass as well, for names that other tools make. Base names out of mangled names may have
 * more (`operator()`, `(anonymous namespace)`); CUDA allows no kernel with such a name, and a glob
 * that fits one is not doubted all the same.
 */
#include <stdio.h>
#include <string.h>

#include "shim/plan/name.h"
#include "shim/plan/pattern.h"

struct doubt {
    char *why, *better;
    size_t why_bytes, better_bytes;
};

/* c is not 0. */
static bool is_in_names(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c >= 0x80 || strchr("_$%.-@", c);
}

static const char *behind(const char *text, const char *prefix) {
    size_t bytes = strlen(prefix);
    return strncmp(text, prefix, bytes) == 0 ? text + bytes : NULL;
}

static void say(const struct doubt *it, const char *why) {
    snprintf(it->why, it->why_bytes, "%s", why);
}

static void offer(const struct doubt *it, const char *prefix, const char *body, size_t bytes) {
    snprintf(it->better, it->better_bytes, "%s%.*s", prefix, (int)bytes, body);
}

/* The # of a comment behind a value. NULL: there is none. */
static const char *comment_in(const char *body) {
    const char *at = strchr(body, '#');
    while (at && at > body && at[-1] != ' ' && at[-1] != '\t')
        at = strchr(at + 1, '#');
    return at && at > body ? at : NULL;
}

static const char no_comment[] =
    "nothing behind a value is a comment, which stands on a line of its own";

static void say_comment(const struct doubt *it, const char *text, const char *comment) {
    while (comment > text && (comment[-1] == ' ' || comment[-1] == '\t'))
        comment--;
    say(it, no_comment);
    offer(it, "", text, (size_t)(comment - text));
}

/* ---- globs of names ---- */

/* The first element that fits no character of a name. NULL: each fits one. */
static const char *misfit(const char *glob) {
    while (*glob) {
        const char *next = glob + 1;
        bool fits = *glob == '*';
        for (unsigned c = 1; !fits && c < 256; c++)
            fits = is_in_names((unsigned char)c) && cus_glob_element(glob, (unsigned char)c, &next);
        if (!fits)
            return glob;
        glob = next;
    }
    return NULL;
}

/* Does it fit a base name with other characters? */
static bool fits_special(const char *glob) {
    static const char *const names[] = {
        "(anonymous namespace)", "{lambda}",     "{unnamed}",     "{binding}", "{string}",
        "operator cast",         "operator\"\"", "operator new[]"};
    static const char seconds[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char mangled[] = "_Z??v", base[32];
    if (!strchr("*?[\\({o~", *glob))
        return false; /* such names begin otherwise */
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (cus_glob_matches(glob, names[i]))
            return true;
    for (unsigned i = 0; i < 26 * (sizeof seconds - 1); i++) { /* each operator has two letters */
        mangled[2] = seconds[i % 26];
        mangled[3] = seconds[i / 26];
        cus_name_base(mangled, base, sizeof base);
        if (behind(base, "operator") && cus_glob_matches(glob, base))
            return true;
    }
    return *glob == '~';
}

/* Writes a glob of a name with namespaces as an expression. Without room for all of it, nothing. */
static void offer_regex(const struct doubt *it, const char *glob) {
    size_t used = (size_t)snprintf(it->better, it->better_bytes, "re:^");
    bool open = false;
    char before = 0;
    for (; *glob && used + 4 < it->better_bytes; glob++) {
        open = *glob == '*' && !glob[1];
        if (*glob == '*' && !open)
            it->better[used++] = '.';
        if (*glob == '?')
            it->better[used++] = '.';
        else if (strchr("(){}.+^$|", *glob))
            it->better[used++] = '\\';
        if (*glob != '?' && !open)
            it->better[used++] = *glob == '!' && before == '[' ? '^' : *glob;
        before = *glob;
    }
    it->better[*glob ? 0 : used] = 0;
    if (!open && !*glob)
        snprintf(it->better + used, it->better_bytes - used, "$");
}

/* The pattern is a name as demanglers show it, perhaps with stars, perhaps cut: `kernel<*`. */
static void offer_shown(const struct doubt *it, const char *glob) {
    static const char wild[] = "*?[]!-\\";
    char cut[512], base[512], qualified[512];
    if (cus_name_shown(glob, wild, base, sizeof base, qualified, sizeof qualified) ==
        CUS_NAME_NONE) {
        snprintf(cut, sizeof cut, "%.*s", (int)strcspn(glob, "<("), glob);
        const char *blank = strrchr(cut, ' ');
        cus_name_shown(blank ? blank + 1 : cut, wild, base, sizeof base, qualified,
                       sizeof qualified);
    }
    if (strstr(qualified, "::"))
        offer_regex(it, qualified);
    else
        offer(it, "", base, strlen(base));
}

static void say_misfit(const struct doubt *it, const char *text, const char *body,
                       const char *bad) {
    bool base = body == text;
    *it->better = 0;
    if (*bad == ':' && bad[1] == ':')
        say(it, base ? "a base name has no namespaces" : "a mangled name has no '::'");
    else if (*bad == '<' || *bad == '>')
        say(it, base ? "a base name has no template arguments" : "a mangled name has no '<'");
    else if (*bad == '(' || *bad == ')')
        say(it, base ? "a base name has no parameters" : "a mangled name has no '('");
    else if (*bad == ' ' || *bad == '\t')
        say(it, "a kernel's name has no blanks, and a rule has one pattern");
    else if (*bad == ',' || *bad == ';')
        say(it, "a rule has one pattern");
    else if (strchr("|^+", *bad))
        say(it, "an expression begins with re:");
    else if (*bad == ':')
        say(it, "the prefixes are re:, mangled:, lib: and api:");
    else if (*bad == '[')
        say(it, "no kernel's name has a character of this set");
    else
        snprintf(it->why, it->why_bytes, "no kernel's name has the character '%c'",
                 bad[*bad == '\\']);
    if (base && strchr("|^+", *bad))
        offer(it, "re:", body, strlen(body));
    else if (base && (strchr(":<>()", *bad) || strpbrk(body, "<(")))
        offer_shown(it, body);
}

static enum cus_doubt doubt_glob(const struct doubt *it, const char *text, const char *body) {
    const char *comment = comment_in(body), *bad = misfit(body);
    if (bad && !(body == text && fits_special(body))) {
        if (comment)
            say_comment(it, text, comment);
        else
            say_misfit(it, text, body, bad);
        return CUS_DOUBT_NEVER;
    }
    if (body == text && behind(body, "_Z")) {
        say(it, "it is compared with base names, which do not begin with _Z");
        offer(it, "mangled:", body, strlen(body));
        return CUS_DOUBT_ODD;
    }
    return CUS_DOUBT_NONE;
}

/* ---- expressions ---- */

/* Is the character at `at` in each text that matches? Told of simple expressions alone. */
static bool is_needed(const char *regex, const char *at) {
    return !strpbrk(regex, "|([") && !(at[1] && strchr("?*{", at[1]));
}

/* The first character outside of sets that no name of a kernel has. */
static const char *odd_in(const char *regex) {
    bool blanks = strstr(regex, "anonymous") || strstr(regex, "operator");
    for (const char *at = regex; *at; at++) {
        if (*at == '\\' && at[1]) {
            at++; /* \< and \> are the ends of words */
        } else if (*at == '[') {
            const char *next;
            cus_glob_element(at, 'a', &next);
            if (!next)
                return NULL;
            at = next - 1;
        } else if (strchr("#<>", *at) || (!blanks && (*at == ' ' || *at == '\t'))) {
            return at;
        }
    }
    return NULL;
}

static enum cus_doubt doubt_regex(const struct doubt *it, const char *text, const char *body) {
    const char *odd = odd_in(body), *comment = comment_in(body);
    const char *mangled = behind(body, *body == '^' ? "^_Z" : "_Z");
    if (comment) {
        say_comment(it, text, comment);
    } else if (odd) {
        bool angle = *odd == '<' || *odd == '>';
        say(it, angle         ? "the compared names have no template arguments"
                : *odd == '#' ? "no kernel's name has '#'"
                              : "the compared names have no blanks");
        offer(it, "", text, angle ? (size_t)(odd - text) : 0);
    } else if (mangled) {
        say(it, "it is compared with names that are not mangled");
        *it->better = 0;
        if (!strpbrk(mangled, ".*+?()[]{}|\\$"))
            snprintf(it->better, it->better_bytes, "mangled:_Z%s*", mangled);
    } else {
        return CUS_DOUBT_NONE;
    }
    const char *at = comment ? comment : odd;
    return at && is_needed(body, at) ? CUS_DOUBT_NEVER : CUS_DOUBT_ODD;
}

static enum cus_doubt judge(const struct doubt *it, const char *text) {
    const char *regex = behind(text, "re:"), *mangled = behind(text, "mangled:");
    const char *file = behind(text, "lib:"), *call = behind(text, "api:");
    const char *comment = file || call ? comment_in(file ? file : call) : NULL;
    if (regex)
        return doubt_regex(it, text, regex);
    if (comment)
        say_comment(it, text, comment);
    if (file || call) /* a file may have any name; no call has a # in it */
        return !comment ? CUS_DOUBT_NONE : call ? CUS_DOUBT_NEVER : CUS_DOUBT_ODD;
    return doubt_glob(it, text, mangled ? mangled : text);
}

/* Is what is offered a pattern that is not doubted itself? */
static bool is_better(const char *text) {
    char why[160], better[512];
    const struct doubt it = {why, better, sizeof why, sizeof better};
    struct cus_pattern *pattern = cus_pattern_new(text, why, sizeof why);
    bool good = pattern && judge(&it, text) == CUS_DOUBT_NONE;
    cus_pattern_free(pattern);
    return good;
}

enum cus_doubt cus_pattern_doubt(const char *text, char *why, size_t why_bytes, char *better,
                                 size_t better_bytes) {
    const struct doubt it = {why, better, why_bytes, better_bytes};
    enum cus_doubt doubt = judge(&it, text);
    if (doubt != CUS_DOUBT_NONE && *better && !is_better(better))
        *better = 0;
    return doubt;
}
