// Pure functions of text.
#include "tests/sim/blocks.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>

namespace sim {

namespace {

struct Block {
    uint64_t bytes;
    bool lives;
};
using Blocks = std::map<uint64_t, Block>; // by address

// The block that holds the address; end: none does, or did.
Blocks::const_iterator At(const Blocks &blocks, uint64_t address) {
    auto at = blocks.upper_bound(address);
    if (at == blocks.begin()) {
        return blocks.end();
    }
    --at;
    return address - at->first < at->second.bytes ? at : blocks.end();
}

// A word of the operation's text as addresses: "0x..." is one, and the parameters of a kernel are
// bytes in hexadecimal, of which each eight may be one.
std::vector<uint64_t> Addresses(const std::string &word) {
    std::vector<uint64_t> all;
    if (word.compare(0, 2, "0x") == 0) {
        all.push_back(strtoull(word.c_str(), nullptr, 16));
    }
    for (size_t at = 0; word.size() >= 16 && at + 16 <= word.size(); at += 16) {
        uint64_t address = 0;
        for (int byte = 7; byte >= 0; byte--) {
            address =
                address << 8 |
                strtoull(word.substr(at + static_cast<size_t>(byte) * 2, 2).c_str(), nullptr, 16);
        }
        all.push_back(address);
    }
    return all;
}

bool NamesTheDead(const Blocks &blocks, std::istringstream *words) {
    for (std::string word; *words >> word;) {
        for (uint64_t address : Addresses(word)) {
            auto block = At(blocks, address);
            if (block != blocks.end() && !block->second.lives) {
                return true;
            }
        }
    }
    return false;
}

} // namespace

std::string TakeOutBlocks(std::vector<std::string> *lines) {
    std::map<std::string, Blocks> streams;
    std::vector<std::string> rest;
    std::string fault;
    for (const std::string &line : *lines) {
        std::istringstream words(line);
        std::string stream, what;
        words >> stream >> what;
        Blocks &blocks = streams[stream];
        if (what == "alloc" || what == "free") {
            std::string address;
            uint64_t bytes = 0;
            words >> address >> bytes;
            blocks[strtoull(address.c_str(), nullptr, 16)] = {bytes, what == "alloc"};
            continue;
        }
        if (fault.empty() && NamesTheDead(blocks, &words)) {
            fault = "memory is used that is not allocated: " + line.substr(0, 120) + "\n";
        }
        rest.push_back(line);
    }
    lines->swap(rest);
    return fault;
}

} // namespace sim
