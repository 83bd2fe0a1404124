// Pure functions of text.
#include "tests/sim/branches.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

namespace sim {

namespace {

using Names = std::set<std::string>;
using Blocks = std::map<uint64_t, uint64_t>; // address, bytes

struct Line {
    std::string stream, what, rest; // "S3", "record", "E0"
};

Line Split(const std::string &text) {
    size_t first = text.find(' '), second = text.find(' ', first + 1);
    if (first == std::string::npos) {
        return {"", text, ""};
    }
    return {text.substr(0, first), text.substr(first + 1, second - first - 1),
            second == std::string::npos ? "" : text.substr(second + 1)};
}

// The streams that each stream waits for, directly or by way of others.
std::map<std::string, Names> WaitsFor(const std::vector<std::string> &lines) {
    std::map<std::string, Names> recorded, waited, waits;
    for (const std::string &text : lines) {
        Line line = Split(text);
        if (line.what == "record") {
            recorded[line.rest].insert(line.stream);
        } else if (line.what == "wait") {
            waited[line.rest].insert(line.stream);
        }
    }
    for (const auto &[event, streams] : waited) {
        for (const std::string &stream : streams) {
            waits[stream].insert(recorded[event].begin(), recorded[event].end());
        }
    }
    for (const auto &[by_way, unused] : waits) {
        Names more = waits[by_way];
        for (auto &[stream, others] : waits) {
            if (others.count(by_way)) {
                others.insert(more.begin(), more.end());
            }
        }
    }
    return waits;
}

Names WaitForEachOther(const std::vector<std::string> &lines) {
    Names names;
    auto waits = WaitsFor(lines);
    for (const auto &[stream, others] : waits) {
        for (const std::string &other : others) {
            if (other != stream && waits.count(other) && waits[other].count(stream)) {
                names.insert(stream);
            }
        }
    }
    return names;
}

bool IsIn(const Blocks &blocks, uint64_t address) {
    auto at = blocks.upper_bound(address);
    return at != blocks.begin() && address - (--at)->first < at->second;
}

// "0x..." is an address, and each eight bytes of a kernel's parameters may be one.
std::string Masked(const Blocks &blocks, const std::string &text) {
    std::string out;
    for (size_t from = 0; from < text.size();) {
        size_t end = std::min(text.find(' ', from), text.size());
        std::string word = text.substr(from, end - from);
        if (word.compare(0, 2, "0x") == 0) {
            bool block = IsIn(blocks, strtoull(word.c_str(), nullptr, 16));
            out += block ? "@" : word;
        } else {
            for (size_t at = 0; at < word.size(); at += 16) {
                std::string part = word.substr(at, 16);
                uint64_t address = strtoull(part.c_str(), nullptr, 16);
                out += part.size() == 16 && IsIn(blocks, __builtin_bswap64(address)) ? "@" : part;
            }
        }
        out += " ";
        from = end + 1;
    }
    return out;
}

void Join(bool all, const Names &names, std::vector<std::string> *lines) {
    std::vector<std::string> rest, together;
    Blocks blocks;
    for (const std::string &text : *lines) {
        Line line = Split(text);
        if (line.what == "alloc") {
            uint64_t address = strtoull(line.rest.c_str(), nullptr, 16);
            uint64_t bytes = strtoull(line.rest.c_str() + line.rest.find(' '), nullptr, 10);
            blocks[address] = std::max(blocks[address], bytes);
        }
    }
    for (const std::string &text : *lines) {
        Line line = Split(text);
        bool orders = line.what == "record" || line.what == "wait";
        if (!all && !names.count(line.stream)) {
            rest.push_back(orders ? line.stream + " " + line.what + " E" : text);
        } else if (!orders && line.what != "alloc" && line.what != "free") {
            together.push_back("branches " + line.what + " " + Masked(blocks, line.rest));
        }
    }
    std::sort(together.begin(), together.end());
    rest.insert(rest.end(), together.begin(), together.end());
    lines->swap(rest);
}

} // namespace

void JoinBranches(bool all, std::vector<std::string> *expected, std::vector<std::string> *actual) {
    Names names = WaitForEachOther(*expected);
    if (all || !names.empty()) {
        Join(all, names, expected);
        Join(all, names, actual);
    }
}

} // namespace sim
