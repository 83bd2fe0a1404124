/*
 * The version of all parts, which stands nowhere else: a semantic one (tools/CHANGELOG.md says what
 * its numbers promise). The date is that of the version, for manual pages; no build reads a clock.
 */
#ifndef CUSPLICE_BASE_VERSION_H
#define CUSPLICE_BASE_VERSION_H

#define CUSPLICE_VERSION "0.1.0"
#define CUSPLICE_DATE "2026-11-27"

#endif
