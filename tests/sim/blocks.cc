// Pure functions of text.
#include "tests/sim/blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

namespace sim {

namespace {

// An address of an operation that lies in a block. A life begins with an allocation.
struct Use {
    unsigned life;
    bool lives;
};

// An operation with "@OFFSET" in place of each such address.
struct Op {
    size_t line; // in the log without allocations and frees
    std::string text;
    std::vector<Use> uses;
    std::set<unsigned> alive; // lives at that time
};

struct Block {
    uint64_t bytes;
    unsigned life;
    bool lives;
};

struct Stream {
    std::map<uint64_t, Block> blocks; // by address
    std::set<unsigned> alive;
    std::vector<Op> ops;
};

using Streams = std::map<std::string, Stream>;

void Append(const Stream &stream, uint64_t address, const std::string &as_it_is, Op *op) {
    auto at = stream.blocks.upper_bound(address);
    if (at != stream.blocks.begin() && address - (--at)->first < at->second.bytes) {
        op->uses.push_back({at->second.life, at->second.lives});
        op->text += "@" + std::to_string(address - at->first);
    } else {
        op->text += as_it_is;
    }
}

// "0x..." is an address, and the parameters of a kernel are bytes in hexadecimal, of which each
// eight may be one.
void AppendWord(const Stream &stream, const std::string &word, Op *op) {
    op->text += " ";
    if (word.compare(0, 2, "0x") == 0) {
        Append(stream, strtoull(word.c_str(), nullptr, 16), word, op);
        return;
    }
    size_t at = 0;
    for (; at + 16 <= word.size(); at += 16) {
        std::string bytes = word.substr(at, 16); // the lowest comes first
        Append(stream, __builtin_bswap64(strtoull(bytes.c_str(), nullptr, 16)), bytes, op);
    }
    op->text += word.substr(at);
}

Streams Read(std::vector<std::string> *lines) {
    Streams streams;
    std::vector<std::string> rest;
    unsigned lives = 0;
    for (const std::string &line : *lines) {
        std::istringstream words(line);
        std::string name, what;
        words >> name >> what;
        Stream &stream = streams[name];
        if (what == "alloc" || what == "free") {
            std::string address;
            uint64_t bytes = 0;
            words >> address >> bytes;
            Block &block = stream.blocks[strtoull(address.c_str(), nullptr, 16)];
            bool made = what == "alloc";
            stream.alive.erase(block.life);
            block = {bytes, made ? ++lives : block.life, made};
            if (made) {
                stream.alive.insert(block.life);
            }
            continue;
        }
        Op op = {rest.size(), what, {}, stream.alive};
        for (std::string word; words >> word;) {
            AppendWord(stream, word, &op);
        }
        stream.ops.push_back(op);
        rest.push_back(line);
    }
    lines->swap(rest);
    return streams;
}

bool HasBlocks(const std::vector<std::string> &lines) {
    return std::any_of(lines.begin(), lines.end(), [](const std::string &line) {
        return line.find(" alloc ") != std::string::npos ||
               line.find(" free ") != std::string::npos;
    });
}

bool UsesTheDead(const Stream &stream, std::string *text) {
    for (const Op &op : stream.ops) {
        for (const Use &use : op.uses) {
            if (!use.lives) {
                *text = op.text;
                return true;
            }
        }
    }
    return false;
}

// Which life of `actual` stands for a life of `expected`.
class Places {
  public:
    bool Agree(const Op &expected, const Op &actual) {
        if (expected.text != actual.text || expected.uses.size() != actual.uses.size()) {
            return false;
        }
        for (size_t i = 0; i < expected.uses.size(); i++) {
            unsigned mine = expected.uses[i].life, theirs = actual.uses[i].life;
            auto [at, is_new] = of_.insert({mine, theirs});
            if (!is_new && at->second != theirs) {
                return false;
            }
            for (unsigned other : expected.alive) {
                auto has = of_.find(other);
                if (other != mine && has != of_.end() && has->second == theirs) {
                    return false;
                }
            }
        }
        return true;
    }

  private:
    std::map<unsigned, unsigned> of_;
};

} // namespace

std::string TakeOutBlocks(std::vector<std::string> *expected, std::vector<std::string> *actual) {
    if (!HasBlocks(*expected) && !HasBlocks(*actual)) {
        return "";
    }
    Streams wanted = Read(expected), are = Read(actual);
    std::string odd, fault;
    for (const auto &[name, stream] : wanted) {
        if (UsesTheDead(stream, &odd)) {
            return "";
        }
    }
    for (const auto &[name, stream] : are) {
        if (UsesTheDead(stream, &fault)) {
            return name + " uses memory that is not allocated: " + fault.substr(0, 120) + "\n";
        }
    }
    for (auto &[name, stream] : wanted) {
        const std::vector<Op> &theirs = are[name].ops;
        Places places;
        for (size_t i = 0; i < stream.ops.size() && i < theirs.size(); i++) {
            std::string &line = (*actual)[theirs[i].line];
            bool agree = places.Agree(stream.ops[i], theirs[i]);
            line = agree                    ? (*expected)[stream.ops[i].line]
                   : theirs[i].uses.empty() ? line
                                            : line + " (of another block)";
        }
    }
    return "";
}

} // namespace sim
