/*
 * The scanner of mangled names. Pure, any thread, no lock, no allocation. Its time is linear in the
 * text, and it nests at most CUS_SCAN_DEPTH_MAX deep.
 * It does not demangle: it finds where the parts of a name begin and end, and keeps nothing of
 * template arguments, types and expressions. Grammar: the Itanium C++ ABI, section 5.1. nvcc puts
 * `__nv_static_LEN_MODULE_` in front of names that are local to a file.
 */
#include "shim/plan/name.h"

#include "shim/plan/name_scan.h"

/* ---- the parts that are kept ---- */

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

/* <length> <identifier>. `kept`: it is part of the name, no ABI tag or qualifier. */
void cus_scan_identifier(struct scan *s, bool kept) {
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

/* Finds the operator whose code is at `code`, without the word "operator". */
static bool find_operator(const char *code, struct part *out) {
    static const char table[] = "aN&= aS= aa&& ad& an& awco_await cl() cm, co~ dV/= dadelete[] de* "
                                "dldelete dv/ eO^= eo^ eq== ge>= gt> "
                                "ix[] lS<<= le<= ls<< lt< mI-= mL*= mi- ml* mm-- nanew[] ne!= ng- "
                                "nt! nwnew oR|= oo|| or| pL+= pl+ "
                                "pm->* pp++ ps+ pt-> qu? rM%= rS>>= rm% rs>> ss<=>";
    for (const char *row = table; *row; row += row[0] == ' ') {
        size_t bytes = strcspn(row, " ");
        if (row[0] == code[0] && row[1] == code[1]) {
            out->text = row + 2;
            out->bytes = bytes - 2;
            return true;
        }
        row += bytes;
    }
    return false;
}

bool cus_scan_is_operator(const char *code) {
    struct part part;
    return find_operator(code, &part);
}

static void scan_operator(struct scan *s) {
    char code[2] = {peek(s), peek_next(s)};
    struct part symbol;
    bool known = code[1] && find_operator(code, &symbol);
    s->at += code[1] ? 2 : 1;
    if (known) {
        keep(s, is_lower(*symbol.text) ? "operator " : "operator", symbol);
    } else if (code[0] == 'c' && code[1] == 'v') {
        bool keeping = s->keeping;
        keep_text(s, "operator cast");
        s->keeping = false;
        cus_scan_type(s);
        s->keeping = keeping;
    } else if (code[0] == 'l' && code[1] == 'i') {
        keep_text(s, "operator\"\"");
        cus_scan_identifier(s, false);
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
            cus_scan_type(s);
        s->keeping = keeping;
        need(s, "E");
    } else {
        need(s, "Ut");
        keep_text(s, "{unnamed}");
    }
    skip_digits(s);
    /* In device code nvcc may leave out the final underscore of a lambda. */
    take(s, "_");
}

static void scan_unqualified(struct scan *s) {
    take(s, "F"); /* a friend defined inside a class */
    take(s, "L"); /* internal linkage */
    while (take(s, "W"))
        cus_scan_identifier(s, false); /* the module of the name */
    if (is_digit(peek(s))) {
        cus_scan_identifier(s, true);
    } else if (peek(s) == 'U') {
        scan_unnamed(s);
    } else if (take(s, "DC")) {
        keep_text(s, "{binding}");
        while (more(s))
            cus_scan_identifier(s, false);
        need(s, "E");
    } else if (is_lower(peek(s))) {
        scan_operator(s);
    } else {
        fail(s);
    }
    while (take(s, "B"))
        cus_scan_identifier(s, false);
}

/* I <arguments> E, if present. Nothing in them is kept. */
void cus_scan_arguments(struct scan *s) {
    bool keeping = s->keeping;
    if (peek(s) != 'I' && peek(s) != 'J')
        return;
    s->at++;
    s->keeping = false;
    if (enter(s)) {
        while (more(s)) {
            if (peek(s) == 'L' || peek(s) == 'X')
                cus_scan_expression(s);
            else if (peek(s) == 'J' || peek(s) == 'I')
                cus_scan_arguments(s);
            else
                cus_scan_type(s);
        }
        need(s, "E");
    }
    leave(s);
    s->keeping = keeping;
}

/* S_ S<n>_ Sa Ss ...: a part that came before. False if a name must follow (St). */
static bool scan_substitution(struct scan *s) {
    need(s, "S");
    char c = peek(s);
    if (c == 't') {
        s->at++;
        keep_text(s, "std");
        return false;
    }
    if (is_lower(c)) {
        static const char *const names[] = {"aallocator", "bbasic_string", "sstring",
                                            "iistream",   "oostream",      "diostream"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (names[i][0] == c) {
                keep_text(s, "std");
                keep_text(s, names[i] + 1);
            }
        s->at++;
        return true;
    }
    while (is_digit(peek(s)) || (peek(s) >= 'A' && peek(s) <= 'Z'))
        s->at++;
    need(s, "_");
    return true;
}

/* T_ T<n>_ TL<n>__<n>_ */
void cus_scan_parameter(struct scan *s) {
    need(s, "T");
    if (take(s, "L")) {
        skip_digits(s);
        need(s, "_");
    }
    skip_digits(s);
    need(s, "_");
}

/* One component of a nested name. */
static void scan_component(struct scan *s) {
    char c = peek(s), next = peek_next(s);
    bool in_class = !s->keeping || s->last.bytes; /* a constructor is named after it */
    if (c == 'I') {
        cus_scan_arguments(s);
    } else if (c == 'S') {
        scan_substitution(s);
    } else if (c == 'T') {
        cus_scan_parameter(s);
    } else if (c == 'D' && (next == 't' || next == 'T')) {
        s->at += 2;
        cus_scan_expression(s);
        need(s, "E");
    } else if (c == 'C' && in_class && (is_digit(next) || next == 'I')) {
        s->at += 2;
        keep(s, "", s->last);
        if (next == 'I') { /* an inherited constructor: which one, and from what type */
            bool keeping = s->keeping;
            s->at += is_digit(peek(s)); /* one digit: the type may begin with a length */
            s->keeping = false;
            cus_scan_type(s);
            s->keeping = keeping;
        }
    } else if (c == 'D' && in_class && is_digit(next)) {
        s->at += 2;
        keep(s, "~", s->last);
    } else if (c == 'M') {
        s->at++;
    } else if (c == 'B') {
        s->at++;
        cus_scan_identifier(s, false);
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

/* Z <function> E <entity inside of the function> */
static void scan_local(struct scan *s) {
    need(s, "Z");
    cus_scan_encoding(s);
    need(s, "E");
    if (take(s, "s")) {
        keep_text(s, "{string}");
    } else {
        if (take(s, "d")) {
            skip_digits(s);
            need(s, "_");
        }
        cus_scan_name(s);
    }
    if (take(s, "__")) {
        skip_digits(s);
        need(s, "_");
    } else if (peek(s) == '_' && is_digit(peek_next(s))) {
        s->at += 2;
    }
}

void cus_scan_name(struct scan *s) {
    if (enter(s)) {
        char c = peek(s);
        if (c == 'N') {
            scan_nested(s);
        } else if (c == 'Z') {
            scan_local(s);
        } else {
            if (c != 'S' || !scan_substitution(s))
                scan_unqualified(s);
            cus_scan_arguments(s);
        }
    }
    leave(s);
}

/* A function: its name, then its return and parameter types. Stops at the end or before an E. */
void cus_scan_encoding(struct scan *s) {
    if (enter(s)) {
        cus_scan_name(s);
        bool keeping = s->keeping;
        s->keeping = false;
        while (more(s) && peek(s) != '.')
            cus_scan_type(s);
        s->keeping = keeping;
    }
    leave(s);
}

/* ---- the two entry points ---- */

/* nvcc: __nv_static_<length>_<module id of that length>_<name>. */
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
                     .last = {"", 0},
                     .qualified = qualified,
                     .out = out,
                     .bytes = bytes};
    /* _ZT.. and _ZG..: tables and guards, no functions. */
    if (take(&s, "_Z") && peek(&s) != 'T' && peek(&s) != 'G')
        cus_scan_encoding(&s);
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
