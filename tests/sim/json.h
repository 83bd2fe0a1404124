// Reads numbers and strings of a stats file by path, such as "issued.in_graphs".
#ifndef TESTS_SIM_JSON_H
#define TESTS_SIM_JSON_H

#include <map>
#include <string>

namespace sim {

struct Json {
    bool valid = false;
    std::map<std::string, double> number;
    std::map<std::string, std::string> text;

    double Number(const std::string &path) const; // 0 if absent
    bool Has(const std::string &path) const;
    double Sum(const std::string &prefix) const; // of all numbers directly below
};

Json ParseJson(const std::string &text);

} // namespace sim

#endif
