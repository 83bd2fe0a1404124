// What tests of every folder ask of texts and files.
#ifndef CUSPLICE_TESTS_TEXT_H
#define CUSPLICE_TESTS_TEXT_H

#include <fstream>
#include <sstream>
#include <string>

inline bool Has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

// How often the text has the part.
inline size_t Count(const std::string &text, const std::string &part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        n++;
    return n;
}

// "" where there is no file.
inline std::string ReadFile(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

#endif
