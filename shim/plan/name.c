/*
 * The scanner of mangled names. Pure, any thread, no lock, no allocation; linear in the text, and it never nests deeper than
 * DEPTH_MAX. It does not demangle: it only needs to know where a name's parts begin and end, so that of template arguments, types
 * and expressions it keeps nothing. Grammar: the Itanium C++ ABI, section 5.1; nvcc puts `__nv_static_LEN_MODULE_` in front of what is
 * local to a file.
 */
#include "shim/plan/name.h"

#include <stdbool.h>
#include <string.h>

enum { DEPTH_MAX = 200 };

/* A part of the text, or a constant. */
struct part {
    const char *text;
    size_t bytes;
};

struct scan {
    const char *at, *end;
    int depth;
    bool failed;
    /* What is kept: only while `keeping`, which template arguments and types switch off. */
    bool keeping, qualified;
    struct part last; /* the component kept last, for constructors and for the base name */
    char *out;
    size_t bytes, used;
};

static void scan_type(struct scan *s);
static void scan_name(struct scan *s);
static void scan_encoding(struct scan *s);
static void scan_expression(struct scan *s);

/* ---- small steps ---- */

static char peek(const struct scan *s) {
    return s->at < s->end ? *s->at : 0;
}

static char peek_next(const struct scan *s) {
    return s->at + 1 < s->end ? s->at[1] : 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

/* Steps behind `word` if it is next. */
static bool take(struct scan *s, const char *word) {
    size_t bytes = strlen(word);
    if ((size_t)(s->end - s->at) < bytes || memcmp(s->at, word, bytes) != 0)
        return false;
    s->at += bytes;
    return true;
}

/* From here on nothing moves: every loop ends at the end of the text. */
static void fail(struct scan *s) {
    s->failed = true;
    s->at = s->end;
}

static void need(struct scan *s, const char *word) {
    if (!take(s, word))
        fail(s);
}

static bool enter(struct scan *s) {
    if (++s->depth > DEPTH_MAX)
        fail(s);
    return !s->failed;
}

static void leave(struct scan *s) {
    s->depth--;
}

static bool more(const struct scan *s) {
    return s->at < s->end && *s->at != 'E';
}

static void skip_digits(struct scan *s) {
    while (is_digit(peek(s)))
        s->at++;
}

/* ---- what is kept ---- */

static void append(struct scan *s, const char *text, size_t bytes) {
    size_t room = s->bytes - 1 - s->used;
    size_t part = bytes < room ? bytes : room;
    memcpy(s->out + s->used, text, part);
    s->used += part;
}

static void keep(struct scan *s, const char *prefix, struct part part) {
    if (!s->keeping)
        return;
    if (!s->qualified)
        s->used = 0;
    else if (s->used)
        append(s, "::", 2);
    append(s, prefix, strlen(prefix));
    append(s, part.text, part.bytes);
    s->last = part;
}

static void keep_text(struct scan *s, const char *text) {
    struct part part = {text, strlen(text)};
    keep(s, "", part);
}

/* ---- names ---- */

/* <length> <identifier>. `kept`: the identifier is part of the name, not an ABI tag or a qualifier. */
static void scan_identifier(struct scan *s, bool kept) {
    size_t length = 0;
    while (is_digit(peek(s))) {
        length = length * 10 + (size_t)(peek(s) - '0');
        s->at++;
        if (length > (size_t)(s->end - s->at)) {
            fail(s);
            return;
        }
    }
    if (!length) {
        fail(s);
        return;
    }
    struct part part = {s->at, length};
    static const char anonymous[] = "_GLOBAL__N_";
    s->at += length;
    if (kept && length >= sizeof anonymous - 1 &&
        memcmp(part.text, anonymous, sizeof anonymous - 1) == 0)
        keep_text(s, "(anonymous namespace)");
    else if (kept)
        keep(s, "", part);
}

static const char *operator_name(const char *code) {
    static const struct {
        char code[3];
        const char *name;
    } table[] = {
        {"aN", "operator&="},  {"aS", "operator="},      {"aa", "operator&&"},
        {"ad", "operator&"},   {"an", "operator&"},      {"aw", "operator co_await"},
        {"cl", "operator()"},  {"cm", "operator,"},      {"co", "operator~"},
        {"dV", "operator/="},  {"da", "operator delete[]"}, {"de", "operator*"},
        {"dl", "operator delete"}, {"dv", "operator/"},  {"eO", "operator^="},
        {"eo", "operator^"},   {"eq", "operator=="},     {"ge", "operator>="},
        {"gt", "operator>"},   {"ix", "operator[]"},     {"lS", "operator<<="},
        {"le", "operator<="},  {"ls", "operator<<"},     {"lt", "operator<"},
        {"mI", "operator-="},  {"mL", "operator*="},     {"mi", "operator-"},
        {"ml", "operator*"},   {"mm", "operator--"},     {"na", "operator new[]"},
        {"ne", "operator!="},  {"ng", "operator-"},      {"nt", "operator!"},
        {"nw", "operator new"}, {"oR", "operator|="},    {"oo", "operator||"},
        {"or", "operator|"},   {"pL", "operator+="},     {"pl", "operator+"},
        {"pm", "operator->*"}, {"pp", "operator++"},     {"ps", "operator+"},
        {"pt", "operator->"},  {"qu", "operator?"},      {"rM", "operator%="},
        {"rS", "operator>>="}, {"rm", "operator%"},      {"rs", "operator>>"},
        {"ss", "operator<=>"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (memcmp(table[i].code, code, 2) == 0)
            return table[i].name;
    return NULL;
}

static void scan_operator(struct scan *s) {
    char code[2] = {peek(s), peek_next(s)};
    const char *name = operator_name(code);
    s->at += code[1] ? 2 : 1;
    if (name) {
        keep_text(s, name);
    } else if (code[0] == 'c' && code[1] == 'v') {
        bool keeping = s->keeping;
        keep_text(s, "operator cast");
        s->keeping = false;
        scan_type(s);
        s->keeping = keeping;
    } else if (code[0] == 'l' && code[1] == 'i') {
        keep_text(s, "operator\"\"");
        scan_identifier(s, false);
    } else {
        fail(s);
    }
}

/* Ul <types> E [n] _ and Ut [n] _. */
static void scan_unnamed(struct scan *s) {
    if (take(s, "Ul")) {
        bool keeping = s->keeping;
        keep_text(s, "{lambda}");
        s->keeping = false;
        while (more(s))
            scan_type(s);
        s->keeping = keeping;
        need(s, "E");
    } else {
        need(s, "Ut");
        keep_text(s, "{unnamed}");
    }
    skip_digits(s);
    /* Lambdas of nvcc's device side may come without their final underscore. */
    take(s, "_");
}

static void scan_unqualified(struct scan *s) {
    take(s, "F"); /* a friend that is defined inside a class */
    take(s, "L"); /* internal linkage */
    while (take(s, "W"))
        scan_identifier(s, false); /* the module that it comes from */
    if (is_digit(peek(s))) {
        scan_identifier(s, true);
    } else if (peek(s) == 'U') {
        scan_unnamed(s);
    } else if (take(s, "DC")) {
        keep_text(s, "{binding}");
        while (more(s))
            scan_identifier(s, false);
        need(s, "E");
    } else if (is_lower(peek(s))) {
        scan_operator(s);
    } else {
        fail(s);
    }
    while (take(s, "B"))
        scan_identifier(s, false);
}

/* I <arguments> E, if there are any. Nothing in them is kept. */
static void scan_arguments(struct scan *s) {
    bool keeping = s->keeping;
    if (peek(s) != 'I' && peek(s) != 'J')
        return;
    s->at++;
    s->keeping = false;
    if (enter(s)) {
        while (more(s)) {
            if (peek(s) == 'L' || peek(s) == 'X')
                scan_expression(s);
            else if (peek(s) == 'J' || peek(s) == 'I')
                scan_arguments(s);
            else
                scan_type(s);
        }
        need(s, "E");
    }
    leave(s);
    s->keeping = keeping;
}

/* S_ S<n>_ Sa Ss ...: a part that was there before. False where a name has to follow (St). */
static bool scan_substitution(struct scan *s) {
    need(s, "S");
    char c = peek(s);
    if (c == 't') {
        s->at++;
        keep_text(s, "std");
        return false;
    }
    if (is_lower(c)) {
        s->at++;
        return true;
    }
    while (is_digit(peek(s)) || (peek(s) >= 'A' && peek(s) <= 'Z'))
        s->at++;
    need(s, "_");
    return true;
}

/* T_ T<n>_ TL<n>__<n>_ */
static void scan_parameter(struct scan *s) {
    need(s, "T");
    if (take(s, "L")) {
        skip_digits(s);
        need(s, "_");
    }
    skip_digits(s);
    need(s, "_");
}

/* One step of a nested name. */
static void scan_component(struct scan *s) {
    char c = peek(s), next = peek_next(s);
    if (c == 'I') {
        scan_arguments(s);
    } else if (c == 'S') {
        scan_substitution(s);
    } else if (c == 'T') {
        scan_parameter(s);
    } else if (c == 'D' && (next == 't' || next == 'T')) {
        s->at += 2;
        scan_expression(s);
        need(s, "E");
    } else if (c == 'C' && (is_digit(next) || next == 'I')) {
        s->at += 2;
        keep(s, "", s->last);
        if (next == 'I') { /* inherited: which one, and from what type */
            skip_digits(s);
            scan_type(s);
        }
    } else if (c == 'D' && is_digit(next)) {
        s->at += 2;
        keep(s, "~", s->last);
    } else if (c == 'M') {
        s->at++;
    } else if (c == 'B') {
        s->at++;
        scan_identifier(s, false);
    } else {
        scan_unqualified(s);
    }
}

static void scan_nested(struct scan *s) {
    need(s, "N");
    take(s, "H"); /* an explicit object parameter */
    while (peek(s) == 'r' || peek(s) == 'V' || peek(s) == 'K')
        s->at++;
    while (peek(s) == 'R' || peek(s) == 'O')
        s->at++;
    while (more(s))
        scan_component(s);
    need(s, "E");
}

/* Z <function> E <what is in it> */
static void scan_local(struct scan *s) {
    need(s, "Z");
    scan_encoding(s);
    need(s, "E");
    if (take(s, "s")) {
        keep_text(s, "{string}");
    } else {
        if (take(s, "d")) {
            skip_digits(s);
            need(s, "_");
        }
        scan_name(s);
    }
    if (take(s, "__")) {
        skip_digits(s);
        need(s, "_");
    } else if (peek(s) == '_' && is_digit(peek_next(s))) {
        s->at += 2;
    }
}

static void scan_name(struct scan *s) {
    if (enter(s)) {
        char c = peek(s);
        if (c == 'N') {
            scan_nested(s);
        } else if (c == 'Z') {
            scan_local(s);
        } else {
            if (c != 'S' || !scan_substitution(s))
                scan_unqualified(s);
            scan_arguments(s);
        }
    }
    leave(s);
}

/* A function: its name, then the types of what it returns and takes. Stops at the end or before an E. */
static void scan_encoding(struct scan *s) {
    if (enter(s)) {
        scan_name(s);
        bool keeping = s->keeping;
        s->keeping = false;
        while (more(s) && peek(s) != '.')
            scan_type(s);
        s->keeping = keeping;
    }
    leave(s);
}

/* ---- types ---- */

/* D and what follows it. */
static void scan_type_d(struct scan *s) {
    s->at++;
    char c = peek(s);
    s->at += c != 0;
    if (c == 'p' || c == 'o' || c == 'x') {
        scan_type(s);
    } else if (c == 't' || c == 'T') {
        scan_expression(s);
        need(s, "E");
    } else if (c == 'O') {
        scan_expression(s);
        need(s, "E");
        scan_type(s);
    } else if (c == 'w') {
        while (more(s))
            scan_type(s);
        need(s, "E");
        scan_type(s);
    } else if (c == 'F') {
        skip_digits(s);
        if (!take(s, "_") && !take(s, "b"))
            need(s, "x");
    } else if (c == 'B' || c == 'U') {
        if (is_digit(peek(s)))
            skip_digits(s);
        else
            scan_expression(s);
        need(s, "_");
    } else if (c == 'v') {
        if (is_digit(peek(s)))
            skip_digits(s);
        else if (take(s, "_"))
            scan_expression(s);
        need(s, "_");
        scan_type(s);
    } else if (!is_lower(c)) {
        fail(s);
    }
}

static void scan_type_t(struct scan *s) {
    char next = peek_next(s);
    if (next == 's' || next == 'u' || next == 'e') { /* struct, union, enum NAME */
        s->at += 2;
        scan_name(s);
    } else if (next == 'y' || next == 'n') { /* how a template parameter was declared */
        s->at += 2;
        scan_type(s);
    } else {
        scan_parameter(s);
        scan_arguments(s);
    }
}

static void scan_array(struct scan *s) {
    need(s, "A");
    if (is_digit(peek(s)))
        skip_digits(s);
    else if (peek(s) != '_')
        scan_expression(s);
    need(s, "_");
    scan_type(s);
}

static void scan_function_type(struct scan *s) {
    need(s, "F");
    take(s, "Y");
    while (more(s)) {
        if ((peek(s) == 'R' || peek(s) == 'O') && peek_next(s) == 'E')
            s->at++; /* & or && behind a member function's parameters */
        else
            scan_type(s);
    }
    need(s, "E");
}

static void scan_type(struct scan *s) {
    if (!enter(s)) {
        leave(s);
        return;
    }
    /* Nobody keeps parts of a type, but a function name's qualifiers come before it: callers have switched `keeping` off. */
    while (peek(s) && strchr("rVKPROCG", peek(s)))
        s->at++;
    char c = peek(s);
    if (c == 'D') {
        scan_type_d(s);
    } else if (c == 'T') {
        scan_type_t(s);
    } else if (c == 'A') {
        scan_array(s);
    } else if (c == 'F') {
        scan_function_type(s);
    } else if (c == 'M') {
        s->at++;
        scan_type(s);
        scan_type(s);
    } else if (c == 'U' && peek_next(s) != 'l' && peek_next(s) != 't') {
        s->at++;
        scan_identifier(s, false);
        scan_arguments(s);
        scan_type(s);
    } else if (c == 'u') {
        s->at++;
        scan_identifier(s, false);
        scan_arguments(s);
    } else if (c == 'N' || c == 'Z' || c == 'S' || c == 'U' || c == 'L' || is_digit(c)) {
        scan_name(s);
    } else if (is_lower(c) && !strchr("kpqru", c)) {
        s->at++;
    } else {
        fail(s);
    }
    leave(s);
}

/* ---- expressions ---- */

static bool is_one_of(const struct scan *s, const char *codes) {
    for (; *codes; codes += 3) {
        if (peek(s) == codes[0] && peek_next(s) == codes[1])
            return true;
        if (!codes[2])
            return false;
    }
    return false;
}

static void scan_literal(struct scan *s) {
    need(s, "L");
    if (take(s, "_Z") || peek(s) == 'Z') {
        take(s, "Z");
        scan_encoding(s);
    } else {
        scan_type(s);
        while (more(s))
            s->at++;
    }
    need(s, "E");
}

static void scan_expressions(struct scan *s) {
    while (more(s))
        scan_expression(s);
    need(s, "E");
}

/* fp_ fp<n>_ fL<n>p<n>_ fpT: a parameter of the function. */
static void scan_function_parameter(struct scan *s) {
    s->at += 2;
    if (take(s, "T"))
        return;
    while (peek(s) && peek(s) != '_')
        s->at++;
    need(s, "_");
}

/* Two small letters and what belongs to them. */
static void scan_operation(struct scan *s) {
    if (is_one_of(s, "fp fL") && !(peek_next(s) == 'L' && !is_digit(s->end - s->at > 2 ? s->at[2] : 0))) {
        scan_function_parameter(s);
    } else if (is_one_of(s, "cl cp il sP nw na")) {
        s->at += 2;
        scan_expressions(s);
    } else if (is_one_of(s, "tl")) {
        s->at += 2;
        scan_type(s);
        scan_expressions(s);
    } else if (is_one_of(s, "cv")) {
        s->at += 2;
        scan_type(s);
        if (take(s, "_"))
            scan_expressions(s);
        else
            scan_expression(s);
    } else if (is_one_of(s, "st at ti")) {
        s->at += 2;
        scan_type(s);
    } else if (is_one_of(s, "dc sc cc rc")) {
        s->at += 2;
        scan_type(s);
        scan_expression(s);
    } else if (is_one_of(s, "sr")) {
        s->at += 2;
        scan_type(s);
        scan_expression(s);
    } else if (is_one_of(s, "gs on tr sZ sz az te nx sp tw ps ng ad de co nt dl da")) {
        bool alone = is_one_of(s, "tr");
        s->at += 2;
        if (!alone)
            scan_expression(s);
    } else if (is_one_of(s, "pp mm")) {
        s->at += 2;
        take(s, "_");
        scan_expression(s);
    } else if (is_one_of(s, "qu")) {
        s->at += 2;
        scan_expression(s);
        scan_expression(s);
        scan_expression(s);
    } else if (is_one_of(s, "fl fr fL fR")) {
        bool two = peek_next(s) == 'L' || peek_next(s) == 'R';
        s->at += 4;
        if (s->at > s->end)
            fail(s);
        scan_expression(s);
        if (two)
            scan_expression(s);
    } else if (peek(s) == 'u' || !peek_next(s)) {
        fail(s);
    } else if (operator_name(s->at) || is_one_of(s, "dt ds")) {
        s->at += 2;
        scan_expression(s);
        scan_expression(s);
    } else {
        fail(s);
    }
}

static void scan_expression(struct scan *s) {
    bool keeping = s->keeping;
    s->keeping = false;
    if (enter(s)) {
        char c = peek(s);
        if (c == 'L') {
            scan_literal(s);
        } else if (c == 'X') {
            s->at++;
            scan_expression(s);
            need(s, "E");
        } else if (c == 'T') {
            scan_parameter(s);
            scan_arguments(s);
        } else if (c == 'J') {
            scan_arguments(s);
        } else if (is_digit(c)) {
            scan_identifier(s, false);
            scan_arguments(s);
        } else if (is_lower(c)) {
            scan_operation(s);
        } else {
            scan_type(s);
        }
    }
    leave(s);
    s->keeping = keeping;
}

/* ---- the two questions ---- */

/* nvcc: __nv_static_<length>_<module id of that length>_<the name itself>. */
static const char *behind_static_prefix(const char *name) {
    static const char prefix[] = "__nv_static_";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return name;
    const char *at = name + sizeof prefix - 1;
    size_t length = 0, left = strlen(at);
    while (is_digit(*at) && length <= left)
        length = length * 10 + (size_t)(*at++ - '0');
    left = strlen(at);
    if (left < 3 || length > left - 3 || at[0] != '_' || at[1 + length] != '_')
        return name;
    return at + 1 + length + 1;
}

static void ask(const char *mangled, char *out, size_t bytes, bool qualified) {
    if (!bytes)
        return;
    const char *name = behind_static_prefix(mangled ? mangled : "");
    struct scan s = {.at = name,
                     .end = name + strlen(name),
                     .keeping = true,
                     .qualified = qualified,
                     .out = out,
                     .bytes = bytes};
    /* _ZT.. and _ZG..: tables and guards, no function. */
    if (take(&s, "_Z") && peek(&s) != 'T' && peek(&s) != 'G')
        scan_encoding(&s);
    if (!s.used)
        append(&s, name, strlen(name));
    out[s.used] = 0;
}

void cus_name_base(const char *mangled, char *out, size_t bytes) {
    ask(mangled, out, bytes, false);
}

void cus_name_qualified(const char *mangled, char *out, size_t bytes) {
    ask(mangled, out, bytes, true);
}
