// Target: patterns of rules. An input is a pattern, a line end and a name. A second, simple matcher
// checks the results of globs.
#include <stdint.h>
#include <string.h>

#include <string>
#include <vector>

#include "shim/plan/name.h"
#include "shim/plan/pattern.h"
#include "tests/fuzz/parse/check.h"

namespace {

// One element of a glob against one character: 1, 0, or -1 where it has no end. *next: what
// follows.
int Element(const std::string &glob, size_t at, unsigned char c, size_t *next) {
    if (glob[at] == '?') {
        *next = at + 1;
        return 1;
    }
    if (glob[at] == '\\') {
        *next = at + 2;
        return at + 1 < glob.size() ? static_cast<unsigned char>(glob[at + 1]) == c : -1;
    }
    if (glob[at] != '[') {
        *next = at + 1;
        return static_cast<unsigned char>(glob[at]) == c;
    }
    size_t i = at + 1;
    bool inverse = i < glob.size() && (glob[i] == '!' || glob[i] == '^'), in = false;
    i += inverse;
    for (size_t first = i; i < glob.size() && (glob[i] != ']' || i == first); i++) {
        unsigned char low = static_cast<unsigned char>(glob[i]), high = low;
        if (i + 2 < glob.size() && glob[i + 1] == '-' && glob[i + 2] != ']') {
            high = static_cast<unsigned char>(glob[i + 2]);
            i += 2;
        }
        in = in || (low <= c && c <= high);
    }
    *next = i + 1;
    return i < glob.size() ? in != inverse : -1;
}

// Which places of the name the first `at` elements of the glob can end at, one element after the
// other.
bool SlowMatch(const std::string &glob, const std::string &name) {
    std::vector<bool> now(name.size() + 1);
    now[0] = true;
    for (size_t at = 0; at < glob.size();) {
        std::vector<bool> then(name.size() + 1);
        size_t next = at + 1;
        if (glob[at] == '*') {
            bool any = false;
            for (size_t i = 0; i <= name.size(); i++) {
                then[i] = any = any || now[i];
            }
        } else {
            for (size_t i = 0; i < name.size(); i++) {
                int got = Element(glob, at, static_cast<unsigned char>(name[i]), &next);
                then[i + 1] = now[i] && got == 1;
            }
            if (name.empty()) {
                Element(glob, at, 0, &next);
            }
        }
        now = then;
        at = next;
    }
    return now[name.size()];
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 300) {
        return 0;
    }
    std::string input(reinterpret_cast<const char *>(data), size);
    size_t line = input.find('\n');
    std::string pattern = input.substr(0, line),
                name = line == std::string::npos ? "kernel" : input.substr(line + 1);
    pattern = pattern.c_str(); // up to a NUL
    name = name.c_str();
    CHECK(cus_glob_matches(pattern.c_str(), name.c_str()) == SlowMatch(pattern, name));
    char error[40];
    cus_pattern *p = cus_pattern_new(pattern.c_str(), error, sizeof error);
    if (!p) {
        CHECK(memchr(error, 0, sizeof error) && *error);
        return 0;
    }
    CHECK(pattern == cus_pattern_text(p));
    bool matches = cus_pattern_matches(p, name.c_str());
    // What is refused matches no name that PTX allows.
    char why[160], better[40] = "";
    bool never = cus_pattern_doubt(pattern.c_str(), why, sizeof why, better, sizeof better) ==
                 CUS_DOUBT_NEVER;
    CHECK(memchr(better, 0, sizeof better));
    CHECK(!never || !matches ||
          name.find_first_not_of(
              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%") !=
              std::string::npos);
    if (pattern.compare(0, 8, "mangled:") == 0) {
        CHECK(matches == SlowMatch(pattern.substr(8), name));
    } else if (pattern.compare(0, 4, "lib:") == 0) {
        CHECK(!matches && pattern.find('/') == std::string::npos);
        CHECK(cus_pattern_matches_lib(p, name.c_str()) == SlowMatch(pattern.substr(4), name));
    } else if (pattern.compare(0, 4, "api:") == 0) {
        CHECK(!matches);
        if (name.size() < 128 && SlowMatch(pattern.substr(4), name)) {
            CHECK(cus_pattern_matches_api(p, name.c_str()));
        }
    } else if (pattern.compare(0, 3, "re:") != 0) {
        char base[1024];
        cus_name_base(name.c_str(), base, sizeof base);
        CHECK(matches == SlowMatch(pattern, base));
    }
    cus_pattern_free(p);
    return 0;
}
