// Target: the reader of the signature cache, with any bytes, as they are and with the checksum
// corrected (a wrong checksum stops the reader). Accepted contents are sorted, sensible and found
// again; writing them gives the same file.
#include <stdint.h>
#include <string.h>

#include <vector>

#include "shim/cache/cache.h"
#include "tests/fuzz/parse/check.h"

namespace {

void Look(const std::vector<uint8_t> &file) {
    cus_cache cache;
    const char *why = "";
    cus_cache_state state = cus_cache_parse(file.data(), file.size(), &cache, &why);
    CHECK((state == CUS_CACHE_GOOD) == (why == nullptr));
    CHECK(state == CUS_CACHE_GOOD || (cache.n == 0 && !cache.entries));
    CHECK(*cus_cache_state_name(state));
    CHECK(cache.n * sizeof(cus_cache_entry) <= file.size());
    for (uint32_t i = 0; i < cache.n; i++) {
        const cus_cache_entry &entry = cache.entries[i];
        CHECK(i == 0 || cache.entries[i - 1].path < entry.path);
        CHECK(entry.ops >= CUS_CACHE_OPS_MIN && entry.ops <= CUS_CACHE_OPS_MAX);
        CHECK(cus_cache_find(cache.entries, cache.n, entry.path) == i);
        bool next = i + 1 < cache.n && cache.entries[i + 1].path == entry.path + 1;
        CHECK(cus_cache_find(cache.entries, cache.n, entry.path + 1) ==
              (next                                                ? i + 1
               : entry.path + 1 == 0 && cache.entries[0].path == 0 ? 0
                                                                   : cache.n));
    }
    CHECK(cus_cache_sort(cache.entries, cache.n) == cache.n);
    cus_cache_free(&cache);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::vector<uint8_t> file(data, data + size);
    Look(file);
    cus_cache_head head;
    if (size < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    memcpy(head.magic, CUS_CACHE_MAGIC, sizeof head.magic);
    if (head.version % 4)
        head.version = CUS_CACHE_VERSION;
    head.entry_bytes = head.entry_bytes % 4 ? sizeof(cus_cache_entry) : head.entry_bytes;
    head.n = head.n % 4 ? (size - sizeof head) / sizeof(cus_cache_entry) : head.n;
    head.zero = 0;
    if (head.n * sizeof(cus_cache_entry) < size - sizeof head)
        file.resize(sizeof head + head.n * sizeof(cus_cache_entry));
    // Lengths that have sense come by chance too seldom.
    for (size_t at = sizeof head + 8; at + 4 <= file.size(); at += sizeof(cus_cache_entry)) {
        uint32_t ops;
        memcpy(&ops, &file[at], 4);
        ops = ops % 64 ? 2 + ops % 1023 : ops;
        memcpy(&file[at], &ops, 4);
    }
    head.check = 0;
    head.check = cus_cache_hash(file.data() + sizeof head, file.size() - sizeof head,
                                cus_cache_hash(&head, sizeof head, 0));
    memcpy(file.data(), &head, sizeof head);
    Look(file);
    return 0;
}
