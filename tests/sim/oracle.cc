// Pure functions of text.
#include "tests/sim/oracle.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/sim/blocks.h"
#include "tests/sim/branches.h"
#include "tests/sim/records.h"
#include "tests/sim/uploads.h"

namespace sim {

namespace {

std::string Context(const std::vector<std::string> &ops, size_t at) {
    std::string text;
    for (size_t i = at > 3 ? at - 3 : 0; i < std::min(ops.size(), at + 4); i++) {
        text += (i == at ? "  > " : "    ") + ops[i].substr(0, 160) + "\n";
    }
    return at >= ops.size() ? text + "  > (end)\n" : text;
}

std::string CompareStream(const std::string &name, const std::vector<std::string> &expected,
                          const std::vector<std::string> &actual) {
    size_t at = 0;
    while (at < expected.size() && at < actual.size() && expected[at] == actual[at]) {
        at++;
    }
    if (at == expected.size() && at == actual.size()) {
        return "";
    }
    std::ostringstream text;
    text << "stream " << name << " differs at operation " << at << " (expected " << expected.size()
         << " operations, there are " << actual.size() << ")\n  expected:\n"
         << Context(expected, at) << "  actual:\n"
         << Context(actual, at);
    return text.str();
}

// The streams that are left when equal ones have been paired off.
void DropEqual(Log *a, Log *b) {
    for (auto i = a->begin(); i != a->end();) {
        auto same = std::find_if(b->begin(), b->end(), [&](const auto &entry) {
            std::vector<std::string> expected = i->second;
            TakeOutRecords(&expected, entry.second);
            return entry.second == expected;
        });
        if (same == b->end()) {
            ++i;
            continue;
        }
        b->erase(same);
        i = a->erase(i);
    }
}

std::vector<std::string> Flat(const Log &log) {
    std::vector<std::string> lines;
    for (const auto &entry : log) {
        for (const std::string &op : entry.second) {
            lines.push_back(entry.first + " " + op);
        }
    }
    return lines;
}

const char kNotUnderstood[] = "(not understood)";

Log ByStream(const std::vector<std::string> &lines) {
    Log log;
    for (const std::string &line : lines) {
        size_t space = line.find(' ');
        if (space == std::string::npos) {
            log[kNotUnderstood].push_back(line);
        } else {
            log[line.substr(0, space)].push_back(line.substr(space + 1));
        }
    }
    return log;
}

std::string TakeOutBlocksOf(Log *want, Log *have) {
    std::vector<std::string> expected = Flat(*want), actual = Flat(*have);
    std::string fault = TakeOutBlocks(&expected, &actual);
    *want = ByStream(expected);
    *have = ByStream(actual);
    return fault;
}

void JoinBranchesOf(bool all, Log *want, Log *have) {
    std::vector<std::string> expected = Flat(*want), actual = Flat(*have);
    JoinBranches(all, &expected, &actual);
    *want = ByStream(expected);
    *have = ByStream(actual);
}

} // namespace

Log ParseLog(const std::string &text) {
    Log log;
    auto at = log.end(); // of the line in front
    for (size_t from = 0, end; from < text.size(); from = end + 1) {
        end = std::min(text.find('\n', from), text.size());
        size_t space = std::min(text.find(' ', from), end);
        const std::string name = space == end ? kNotUnderstood : text.substr(from, space - from);
        if (at == log.end() || at->first != name) {
            at = log.try_emplace(name).first;
        }
        size_t op = space == end ? from : space + 1;
        at->second.emplace_back(text, op, end - op);
    }
    return log;
}

std::string CompareLogs(const Log &expected, const Log &actual, const CompareRules &rules) {
    if (expected == actual) {
        return "";
    }
    Log want = expected, have = actual;
    for (Log *log : {&want, &have}) {
        for (auto &entry : *log) {
            CallUploadsWrites(&entry.second);
        }
    }
    if (rules.branches) {
        JoinBranchesOf(rules.any_stream_order, &want, &have);
    }
    for (auto &[name, ops] : want) {
        if (!rules.any_stream_order) {
            TakeOutRecords(&ops, have[name]);
        }
    }
    std::string fault = TakeOutBlocksOf(&want, &have);
    if (!fault.empty()) {
        return fault;
    }
    if (rules.any_op_order) {
        for (Log *log : {&want, &have}) {
            for (auto &entry : *log) {
                std::sort(entry.second.begin(), entry.second.end());
            }
        }
    }
    if (rules.any_stream_order) {
        DropEqual(&want, &have);
    }
    std::set<std::string> names;
    for (const Log *log : {&want, &have}) {
        for (const auto &entry : *log) {
            names.insert(entry.first);
        }
    }
    for (const auto &name : names) {
        std::string difference = CompareStream(name, want[name], have[name]);
        if (!difference.empty()) {
            return difference;
        }
    }
    return "";
}

size_t CountOps(const Log &log) {
    size_t count = 0;
    for (const auto &entry : log) {
        count += entry.second.size();
    }
    return count;
}

} // namespace sim
