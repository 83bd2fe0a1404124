// What verbs tell of a trace, held against Raw, which works it out anew.
#ifndef CUSPLICE_TESTS_LAUNCHER_TOLD_H
#define CUSPLICE_TESTS_LAUNCHER_TOLD_H

#include "tests/launcher/launcher.h"
#include "tests/launcher/raw.h"
#include "tests/sim/json.h"

// What a verb prints; it has to succeed.
std::string Says(const Strings &arguments);
sim::Json Parse(const std::string &text);
// A script element of a page, and the numbers of a packed column (html_data.c says how).
std::string Element(const std::string &page, const std::string &id);
std::vector<double> Column(const std::string &page, const std::string &id);

// The reports but that of kernels.
struct Reported {
    const char *name;
    RawRows (Raw::*rows)() const;
};
extern const Reported kReports[4];

// The table below `under` ("" or "report.") has these rows, in whatever order, and no others.
void ExpectRows(const sim::Json &json, const std::string &under, const RawRows &expected);
// The same of kernels: patched nodes are those of each where the records tell it, else in all.
void ExpectKernels(const sim::Json &json, const std::string &under, const Raw &raw);
void ExpectDatabase(const std::string &path, const Raw &raw);
void ExpectViewer(const std::string &path, const Raw &raw);
// All reports, info, the page, and all exports.
void ExpectAll(const std::string &path);

#endif
