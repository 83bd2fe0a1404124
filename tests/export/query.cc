#include "tests/export/query.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdio.h>

std::string Query(const std::string &path, const std::string &sql) {
    sqlite3 *db = nullptr;
    sqlite3_stmt *row = nullptr;
    std::string out;
    sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr);
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &row, nullptr) != SQLITE_OK)
        out = sqlite3_errmsg(db);
    while (row && sqlite3_step(row) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            const unsigned char *text = sqlite3_column_text(row, i);
            out +=
                (i ? "|" : "") + std::string(text ? reinterpret_cast<const char *>(text) : "NULL");
        }
        out += "\n";
    }
    sqlite3_finalize(row);
    sqlite3_close(db);
    return out;
}

void Database(const std::string &path, const std::string &sql) {
    sqlite3 *db = nullptr;
    char *error = nullptr;
    remove(path.c_str());
    sqlite3_open(path.c_str(), &db);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_free(error);
    sqlite3_close(db);
}

Strings FilesWith(const std::string &part) {
    Strings found;
    DIR *folder = opendir(Folder().c_str());
    while (dirent *entry = readdir(folder))
        if (std::string(entry->d_name).find(part) != std::string::npos)
            found.push_back(entry->d_name);
    closedir(folder);
    return found;
}
