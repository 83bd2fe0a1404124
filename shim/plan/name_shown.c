/*
 * Names as demanglers and profilers show them: `void ns::kernel<float, 4>(float*, int)`. Finds the
 * same parts that name.c finds in mangled names. Pure, any thread, no lock, no allocation. Reads
 * from the end, since a return type may be anything; each character is looked at a few times.
 */
#include <string.h>

#include "shim/plan/name.h"

enum { PARTS = 64 };

struct shown {
    const char *text;
    size_t end; /* what is left to be read */
    const char *wild;
    struct {
        const char *text;
        size_t bytes;
    } part[PARTS]; /* the last one first */
    unsigned n;
    bool arguments; /* of the function or of its template */
    bool failed;
};

static bool ends_with(const struct shown *it, const char *word) {
    size_t bytes = strlen(word);
    return it->end >= bytes && memcmp(it->text + it->end - bytes, word, bytes) == 0;
}

static bool drop(struct shown *it, const char *word) {
    if (!ends_with(it, word))
        return false;
    it->end -= strlen(word);
    return true;
}

/* c is a character of the text, so it is not 0. */
static bool is_letter(const struct shown *it, char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_$~%.", c) || (unsigned char)c >= 0x80 || strchr(it->wild, c);
}

/* Where the bracket opens that the last character closes; it->end: nowhere. In round and curly
 * brackets < and > may be operators. */
static size_t opening(const struct shown *it) {
    char open[128];
    unsigned depth = 0;
    for (size_t at = it->end; at-- > 0;) {
        char c = it->text[at];
        bool angles = !depth || open[depth - 1] == '<';
        if (c == ')' || c == '}' || c == ']' ||
            (c == '>' && angles && (!at || it->text[at - 1] != '-'))) {
            if (depth == sizeof open)
                break;
            open[depth++] = c == ')' ? '(' : c == '}' ? '{' : c == ']' ? '[' : '<';
        } else if (c == '(' || c == '{' || c == '[' || (c == '<' && angles)) {
            if (!depth || open[--depth] != c)
                break;
            if (!depth)
                return at;
        }
    }
    return it->end;
}

static void take(struct shown *it, const char *text, size_t bytes) {
    if (it->n == PARTS || !bytes) {
        it->failed = true;
        return;
    }
    it->part[it->n].text = text;
    it->part[it->n++].bytes = bytes;
}

/* True: the part is in brackets itself, and was taken. */
static bool take_unnamed(struct shown *it) {
    static const struct {
        const char *shown, *name;
        bool whole;
    } words[] = {
        {"(anonymous namespace)", "(anonymous namespace)", true},
        {"{anonymous}", "(anonymous namespace)", true},
        {"<unnamed>", "(anonymous namespace)", true},
        {"{lambda", "{lambda}", false},
        {"(lambda", "{lambda}", false},
        {"{unnamed", "{unnamed}", false},
    };
    size_t from = opening(it);
    for (unsigned i = 0; from < it->end && i < sizeof words / sizeof *words; i++) {
        size_t bytes = strlen(words[i].shown), has = it->end - from;
        if (has < bytes || (words[i].whole && has != bytes) ||
            memcmp(it->text + from, words[i].shown, bytes) != 0 ||
            (from > 0 && is_letter(it, it->text[from - 1])))
            continue;
        take(it, words[i].name, strlen(words[i].name));
        it->end = from;
        return true;
    }
    return false;
}

/* Leaves out arguments of a template or function; those of operator() go without its name. */
static void skip_arguments(struct shown *it) {
    while (ends_with(it, " const") || ends_with(it, " volatile"))
        drop(it, ends_with(it, " const") ? " const" : " volatile");
    if (ends_with(it, ")") && !ends_with(it, "operator()")) {
        size_t from = opening(it);
        it->failed |= from == it->end || !from;
        it->end = from;
        it->arguments = true;
    }
    if (ends_with(it, ">")) {
        size_t from = opening(it);
        it->failed |= from == it->end || !from;
        it->end = from;
        it->arguments = true;
    }
}

static void take_part(struct shown *it) {
    size_t end = it->end;
    if (take_unnamed(it))
        return;
    skip_arguments(it);
    if (it->failed || (end != it->end && take_unnamed(it)))
        return;
    end = it->end;
    if (!drop(it, "operator()"))
        while (it->end > 0 && is_letter(it, it->text[it->end - 1]))
            it->end--;
    take(it, it->text + it->end, end - it->end);
    char first = it->text[it->end];
    it->failed |= first >= '0' && first <= '9';
}

/* What stands in front of a name is its return type, and only functions shown with arguments have
 * one. It may be anything: `std::enable_if<(4)>(3), void>::type `. */
static void check_type(struct shown *it) {
    char first = it->text[0], last = it->end ? it->text[it->end - 1] : 0;
    if (it->end)
        it->failed |= !it->arguments || !strchr(" *&", last) || !is_letter(it, first) ||
                      (first >= '0' && first <= '9');
}

static void put(char *out, size_t bytes, size_t *used, const char *text, size_t n) {
    size_t room = bytes - 1 - *used, part = n < room ? n : room;
    memcpy(out + *used, text, part);
    *used += part;
    out[*used] = 0;
}

enum cus_name_form cus_name_shown(const char *shown, const char *wild, char *base,
                                  size_t base_bytes, char *qualified, size_t qualified_bytes) {
    struct shown it = {.text = shown, .end = strlen(shown), .wild = wild};
    size_t used = 0;
    *base = *qualified = 0;
    while (ends_with(&it, "]")) { /* [clone .kd] */
        size_t from = opening(&it);
        if (from == it.end || strncmp(shown + from, "[clone", 6) != 0)
            break;
        for (it.end = from; drop(&it, " ");)
            ;
    }
    do
        take_part(&it);
    while (!it.failed && drop(&it, "::") && it.end);
    if (!it.failed)
        check_type(&it);
    if (it.failed)
        return CUS_NAME_NONE;
    put(base, base_bytes, &used, it.part[0].text, it.part[0].bytes);
    used = 0;
    for (unsigned i = it.n; i-- > 0;) {
        put(qualified, qualified_bytes, &used, it.part[i].text, it.part[i].bytes);
        put(qualified, qualified_bytes, &used, "::", i ? 2 : 0);
    }
    return it.arguments ? CUS_NAME_DEMANGLED : it.n > 1 ? CUS_NAME_QUALIFIED : CUS_NAME_BASE;
}
