// Pure functions of text.
#include "tests/sim/uploads.h"

#include <sstream>

namespace sim {

namespace {

// "" if the line is neither.
std::string Written(const std::string &line) {
    size_t at = line.find("memcpy HtoD ");
    bool copy = at != std::string::npos;
    if (!copy && (at = line.find("memset 0x")) == std::string::npos) {
        return "";
    }
    std::istringstream in(line.substr(at));
    std::string what, kind, address, host, bytes, value, element, more;
    in >> what;
    if (copy) {
        in >> kind >> address >> host >> bytes >> value;
        element = host == "host" && !value.empty() ? bytes : "";
    } else {
        in >> address >> bytes >> value >> element;
    }
    if (element.empty() || element != bytes || in >> more) {
        return "";
    }
    return line.substr(0, at) + "write " + address + " " + bytes + " " + value;
}

} // namespace

void CallUploadsWrites(std::vector<std::string> *lines) {
    for (std::string &line : *lines) {
        std::string written = Written(line);
        if (!written.empty()) {
            line = written;
        }
    }
}

} // namespace sim
