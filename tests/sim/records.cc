// Pure functions of text.
#include "tests/sim/records.h"

#include <set>

namespace sim {

namespace {

bool Has(const std::string &line, const char *text) {
    return line.find(text) != std::string::npos;
}

bool IsRecord(const std::string &line) {
    return Has(line, "record E");
}

// A free may come late, and an allocation be left out (blocks.h).
bool IsOfPool(const std::string &line) {
    return Has(line, "alloc 0x") || Has(line, "free 0x");
}

std::string FirstWord(const std::string &line) {
    return line.substr(0, line.find(' '));
}

// Operations that are not records need not be equal: whoever compares the logs tells how they
// differ.
bool Pair(const std::string &expected, const std::string &actual) {
    return IsRecord(expected) || IsRecord(actual) ? expected == actual
                                                  : FirstWord(expected) == FirstWord(actual);
}

} // namespace

// From the end on, so that of equal records the last ones are paired.
void TakeOutRecords(std::vector<std::string> *expected, const std::vector<std::string> &actual) {
    std::vector<std::string> kept; // the last one first
    std::set<std::string> again;
    size_t i = expected->size(), k = actual.size();
    for (; i > 0; i--) {
        const std::string &line = (*expected)[i - 1];
        while (k > 0 && IsOfPool(actual[k - 1])) {
            k--;
        }
        if (!IsOfPool(line)) {
            bool pair = k > 0 && Pair(line, actual[k - 1]);
            if (!pair && again.count(line)) {
                continue; // left out
            }
            if (!pair) {
                break; // the logs differ here
            }
            k--;
        }
        kept.push_back(line);
        if (IsRecord(line)) {
            again.insert(line);
        }
    }
    expected->resize(i);
    expected->insert(expected->end(), kept.rbegin(), kept.rend());
}

} // namespace sim
