// Checks that output keeps its format, whatever texts it contains. Each function checks a whole
// output, and ends the process if the output is wrong. The parsers here share nothing with the
// tree's.
#ifndef TESTS_FUZZ_PARSE_FORMS_H
#define TESTS_FUZZ_PARSE_FORMS_H

#include <stdio.h>

#include <functional>
#include <string>
#include <vector>

// What `print` writes to the file that it is given.
std::string Printed(const std::function<void(FILE *)> &print);

// Valid UTF-8 without control characters (C0 but line feeds, DEL, C1), without characters that turn
// the direction of text or end a line. The last line is ended.
void CheckPlain(const std::string &text);
std::vector<std::string> Lines(const std::string &text);
// One JSON value and white space.
void CheckJson(const std::string &text);
// RFC 4180 with line feeds; every row has as many cells, and none is a formula unless it is one of
// the numbers (`numbers` says it by column).
std::vector<std::vector<std::string>> CheckCsv(const std::string &text,
                                               const std::vector<bool> &numbers);
// The language of Graphviz, as far as `dump --dot` uses it.
void CheckDot(const std::string &text);
// XML 1.0 without a DTD: elements nest, attributes are quoted, nothing but the elements and
// attributes of plot.c.
void CheckSvg(const std::string &text);
// Elements of HTML with JSON or numbers in them, and nothing that ends one.
void CheckScripts(const std::string &text);

#endif
