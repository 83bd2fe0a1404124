// A pure function of text.
#include "tests/sim/records.h"

#include <algorithm>
#include <set>

namespace sim {

// From the end on, so that of equal records the last ones are paired.
void TakeOutRecords(std::vector<std::string> *expected, const std::vector<std::string> &actual) {
    std::vector<std::string> kept; // the last one first
    std::set<std::string> again;
    size_t i = expected->size(), k = actual.size();
    while (i > 0) {
        const std::string &line = (*expected)[i - 1];
        bool record = line.find("record E") != std::string::npos;
        bool same = k > 0 && actual[k - 1] == line;
        if (!same && !(record && again.count(line))) {
            break;
        }
        if (same) {
            kept.push_back(line);
            k--;
        }
        if (record) {
            again.insert(line);
        }
        i--;
    }
    expected->resize(i); // what differs
    expected->insert(expected->end(), kept.rbegin(), kept.rend());
}

} // namespace sim
