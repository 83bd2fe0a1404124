// Returns the contents of databases and folders as text.
#ifndef CUSPLICE_TESTS_EXPORT_QUERY_H
#define CUSPLICE_TESTS_EXPORT_QUERY_H

#include <string>

#include "tests/launcher/launcher.h"

// All rows of a query, | between columns, a line each; the error where it has one.
std::string Query(const std::string &path, const std::string &sql);
// Makes a database of statements; a file that is there is replaced.
void Database(const std::string &path, const std::string &sql);
// Files of Folder() with this in their names.
Strings FilesWith(const std::string &part);

#endif
