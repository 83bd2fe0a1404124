/*
 * The part of the scanner that skips types and expressions. Called by name.c only. Pure, any
 * thread, no lock.
 */
#include "shim/plan/name_scan.h"

/* ---- types ---- */

/* D and what follows it. */
static void scan_type_d(struct scan *s) {
    s->at++;
    char c = peek(s);
    s->at += c != 0;
    if (c == 'p' || c == 'o' || c == 'x') {
        cus_scan_type(s);
    } else if (c == 't' || c == 'T') {
        cus_scan_expression(s);
        need(s, "E");
    } else if (c == 'O') {
        cus_scan_expression(s);
        need(s, "E");
        cus_scan_type(s);
    } else if (c == 'w') {
        while (more(s))
            cus_scan_type(s);
        need(s, "E");
        cus_scan_type(s);
    } else if (c == 'F') {
        skip_digits(s);
        if (!take(s, "_") && !take(s, "b"))
            need(s, "x");
    } else if (c == 'B' || c == 'U') {
        if (is_digit(peek(s)))
            skip_digits(s);
        else
            cus_scan_expression(s);
        need(s, "_");
    } else if (c == 'v') {
        if (is_digit(peek(s)))
            skip_digits(s);
        else if (take(s, "_"))
            cus_scan_expression(s);
        need(s, "_");
        cus_scan_type(s);
    } else if (!is_lower(c)) {
        fail(s);
    }
}

static void scan_type_t(struct scan *s) {
    char next = peek_next(s);
    if (next == 's' || next == 'u' || next == 'e') { /* struct, union, enum NAME */
        s->at += 2;
        cus_scan_name(s);
    } else if (next == 'y' || next == 'n') { /* the declaration of a template parameter */
        s->at += 2;
        cus_scan_type(s);
    } else {
        cus_scan_parameter(s);
        cus_scan_arguments(s);
    }
}

static void scan_array(struct scan *s) {
    need(s, "A");
    if (is_digit(peek(s)))
        skip_digits(s);
    else if (peek(s) != '_')
        cus_scan_expression(s);
    need(s, "_");
    cus_scan_type(s);
}

static void scan_function_type(struct scan *s) {
    need(s, "F");
    take(s, "Y");
    while (more(s)) {
        if ((peek(s) == 'R' || peek(s) == 'O') && peek_next(s) == 'E')
            s->at++; /* & or && behind a member function's parameters */
        else
            cus_scan_type(s);
    }
    need(s, "E");
}

void cus_scan_type(struct scan *s) {
    if (!enter(s)) {
        leave(s);
        return;
    }
    /* No part of a type is kept, since the callers have switched `keeping` off. Qualifiers come
     * before the type. */
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
        cus_scan_type(s);
        cus_scan_type(s);
    } else if (c == 'U' && peek_next(s) != 'l' && peek_next(s) != 't') {
        s->at++;
        cus_scan_identifier(s, false);
        cus_scan_arguments(s);
        cus_scan_type(s);
    } else if (c == 'u') {
        s->at++;
        cus_scan_identifier(s, false);
        cus_scan_arguments(s);
    } else if (c == 'N' || c == 'Z' || c == 'S' || c == 'U' || c == 'L' || is_digit(c)) {
        cus_scan_name(s);
    } else if (is_lower(c) && !strchr("kpqru", c)) {
        s->at++;
    } else {
        fail(s);
    }
    leave(s);
}

/* ---- expressions ---- */

static bool is_one_of(const struct scan *s, const char *codes) {
    for (;; codes += 3) {
        if (peek(s) == codes[0] && peek_next(s) == codes[1])
            return true;
        if (!codes[2])
            return false;
    }
}

static void scan_literal(struct scan *s) {
    need(s, "L");
    if (take(s, "_Z") || take(s, "Z")) {
        cus_scan_encoding(s);
    } else {
        cus_scan_type(s);
        while (more(s))
            s->at++;
    }
    need(s, "E");
}

static void scan_expressions(struct scan *s) {
    while (more(s))
        cus_scan_expression(s);
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

/* An operation: two small letters and their operands. */
static void scan_operation(struct scan *s) {
    if (is_one_of(s, "fp fL") &&
        !(peek_next(s) == 'L' && !is_digit(s->end - s->at > 2 ? s->at[2] : 0))) {
        scan_function_parameter(s);
    } else if (is_one_of(s, "cl cp il sP nw na")) {
        s->at += 2;
        scan_expressions(s);
    } else if (is_one_of(s, "tl")) {
        s->at += 2;
        cus_scan_type(s);
        scan_expressions(s);
    } else if (is_one_of(s, "cv")) {
        s->at += 2;
        cus_scan_type(s);
        if (take(s, "_"))
            scan_expressions(s);
        else
            cus_scan_expression(s);
    } else if (is_one_of(s, "st at ti")) {
        s->at += 2;
        cus_scan_type(s);
    } else if (is_one_of(s, "dc sc cc rc")) {
        s->at += 2;
        cus_scan_type(s);
        cus_scan_expression(s);
    } else if (is_one_of(s, "sr")) {
        s->at += 2;
        cus_scan_type(s);
        cus_scan_expression(s);
    } else if (is_one_of(s, "gs on tr sZ sz az te nx sp tw ps ng ad de co nt dl da")) {
        bool alone = is_one_of(s, "tr");
        s->at += 2;
        if (!alone)
            cus_scan_expression(s);
    } else if (is_one_of(s, "pp mm")) {
        s->at += 2;
        take(s, "_");
        cus_scan_expression(s);
    } else if (is_one_of(s, "qu")) {
        s->at += 2;
        cus_scan_expression(s);
        cus_scan_expression(s);
        cus_scan_expression(s);
    } else if (is_one_of(s, "fl fr fL fR")) {
        bool two = peek_next(s) == 'L' || peek_next(s) == 'R';
        s->at += 4;
        if (s->at > s->end)
            fail(s);
        cus_scan_expression(s);
        if (two)
            cus_scan_expression(s);
    } else if (peek(s) == 'u' || !peek_next(s)) {
        fail(s);
    } else if (cus_scan_is_operator(s->at) || is_one_of(s, "dt ds")) {
        s->at += 2;
        cus_scan_expression(s);
        cus_scan_expression(s);
    } else {
        fail(s);
    }
}

void cus_scan_expression(struct scan *s) {
    bool keeping = s->keeping;
    s->keeping = false;
    if (enter(s)) {
        char c = peek(s);
        if (c == 'L') {
            scan_literal(s);
        } else if (c == 'X') {
            s->at++;
            cus_scan_expression(s);
            need(s, "E");
        } else if (c == 'T') {
            cus_scan_parameter(s);
            cus_scan_arguments(s);
        } else if (c == 'J') {
            cus_scan_arguments(s);
        } else if (is_digit(c)) {
            cus_scan_identifier(s, false);
            cus_scan_arguments(s);
        } else if (is_lower(c)) {
            scan_operation(s);
        } else {
            cus_scan_type(s);
        }
    }
    leave(s);
    s->keeping = keeping;
}
