// How libFuzzer changes traces: one record or block at a time, so most of the file stays sound.
// libFuzzer changes inputs that are no whole files in its own way.
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "shim/trace/format.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));

namespace {

using Segments = std::vector<std::string>; // records of a block; blocks of a file

struct Random {
    std::mt19937_64 source;
    size_t Below(size_t n) { return n ? source() % n : 0; }
};

template <class T> T Read(const std::string &bytes, size_t at) {
    T value;
    memcpy(&value, &bytes[at], sizeof value);
    return value;
}

Segments Records(const std::string &payload) {
    Segments records;
    for (size_t at = 0; at < payload.size();) {
        size_t left = payload.size() - at, bytes = left;
        if (left >= sizeof(cst_record))
            bytes = std::min<size_t>(left, Read<cst_record>(payload, at).words * 8u);
        records.push_back(payload.substr(at, bytes ? bytes : left));
        at += records.back().size();
    }
    return records;
}

// The first is the head of the file.
Segments Blocks(const std::string &file) {
    Segments blocks = {file.substr(0, sizeof(cst_file))};
    for (size_t at = sizeof(cst_file); at < file.size();) {
        size_t left = file.size() - at, bytes = left;
        if (left > sizeof(cst_block)) {
            uint64_t payload = Read<cst_block>(file, at).bytes;
            bytes = payload < left
                        ? std::min<size_t>(left, sizeof(cst_block) + (payload + 7) / 8 * 8)
                        : left;
        }
        blocks.push_back(file.substr(at, bytes));
        at += bytes;
    }
    return blocks;
}

std::string Join(const Segments &segments) {
    std::string all;
    for (const std::string &segment : segments)
        all += segment;
    return all;
}

// A number that stands elsewhere, or one that often is a limit.
void ChangeNumber(std::string *bytes, size_t from, const std::string &file, Random *random) {
    static const uint64_t odd[] = {0, 1, 2, 3, 7, 8, 255, 65536, 0xffffffff, uint64_t{1} << 63};
    size_t each = random->Below(3) ? 4 : 8;
    if (bytes->size() < from + each || file.size() < 8)
        return;
    size_t at = from + random->Below((bytes->size() - from) / each) * each;
    uint64_t number = Read<uint64_t>(file, random->Below(file.size() / 8) * 8);
    if (random->Below(2))
        number = odd[random->Below(sizeof odd / sizeof *odd)];
    if (random->Below(4) == 0)
        number = Read<uint64_t>(*bytes + "01234567", at);
    number += random->Below(4) ? 0 : random->Below(5) - 2;
    memcpy(&(*bytes)[at], &number, each);
}

void ChangeBytes(std::string *bytes, size_t from, Random *) {
    if (bytes->size() <= from || !LLVMFuzzerMutate)
        return;
    size_t n = bytes->size() - from;
    n = LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(&(*bytes)[from]), n, n);
    std::fill(bytes->begin() + static_cast<long>(from + n), bytes->end(), 0);
}

// One segment behind the first `fixed` is left out, doubled, moved, or changed behind its head.
void ChangeSegments(Segments *segments, size_t fixed, size_t head, const std::string &file,
                    Random *random) {
    if (segments->size() <= fixed)
        return;
    size_t n = segments->size() - fixed, at = fixed + random->Below(n),
           to = fixed + random->Below(n);
    switch (random->Below(8)) {
    case 0:
        segments->erase(segments->begin() + static_cast<long>(at));
        break;
    case 1:
        segments->insert(segments->begin() + static_cast<long>(to), std::string((*segments)[at]));
        break;
    case 2:
        std::swap((*segments)[at], (*segments)[to]);
        break;
    case 3:
        ChangeBytes(&(*segments)[at], head, random);
        break;
    default:
        ChangeNumber(&(*segments)[at], head, file, random);
    }
}

void ChangeBlock(std::string *block, const std::string &file, Random *random) {
    if (block->size() < sizeof(cst_block))
        return;
    cst_block head = Read<cst_block>(*block, 0);
    std::string payload = block->substr(sizeof head);
    if (head.type == CST_BLOCK_RECORDS && !head.flags) {
        Segments records = Records(payload);
        for (size_t times = 1 + random->Below(3); times; times--)
            ChangeSegments(&records, 0, random->Below(8) ? sizeof(cst_record) : 0, file, random);
        payload = Join(records);
        head.bytes = head.raw = payload.size();
    } else if (random->Below(2)) {
        ChangeNumber(&payload, 0, file, random);
    } else {
        ChangeBytes(&payload, 0, random);
    }
    memcpy(&(*block)[0], &head, sizeof head);
    *block = block->substr(0, sizeof head) + payload;
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    Random random = {std::mt19937_64(seed)};
    std::string file(reinterpret_cast<char *>(data), size);
    if (file.compare(0, 8, CST_MAGIC) != 0 || random.Below(8) == 0)
        return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, most) : size;
    Segments blocks = Blocks(file);
    if (random.Below(8) == 0 || blocks.size() < 2)
        ChangeSegments(&blocks, 1, sizeof(cst_block), file, &random);
    else
        ChangeBlock(&blocks[1 + random.Below(blocks.size() - 1)], file, &random);
    std::string changed = Join(blocks);
    if (changed.size() > most)
        return size;
    memcpy(data, changed.data(), changed.size());
    return changed.size();
}
