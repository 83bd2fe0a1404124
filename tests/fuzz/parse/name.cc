// Target: the scanner of mangled names, with any text and buffers of any size.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "shim/plan/name.h"
#include "tests/fuzz/parse/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4096) {
        return 0;
    }
    std::string text(reinterpret_cast<const char *>(data), size);
    // Just as large as it is, so that a read behind the end is seen.
    char *name = strdup(text.c_str());
    size_t length = strlen(name);
    char base[8192], qualified[8192];
    cus_name_base(name, base, sizeof base);
    cus_name_qualified(name, qualified, sizeof qualified);
    CHECK(memchr(base, 0, sizeof base) && memchr(qualified, 0, sizeof qualified));
    CHECK(*base || !*name);
    // The qualified name ends with the base name.
    size_t b = strlen(base), q = strlen(qualified);
    CHECK(q >= b && strcmp(qualified + q - b, base) == 0);
    if (strncmp(name, "_Z", 2) != 0 && strncmp(name, "__nv_static_", 12) != 0 &&
        length < sizeof base) {
        CHECK(strcmp(base, name) == 0);
    }
    // As demanglers show names: a form, both parts or none, and the same ends.
    char *shown = static_cast<char *>(malloc(1 + size % 24));
    char part[8192], whole[8192], cut[64];
    enum cus_name_form form =
        cus_name_shown(name, size % 2 ? "*?" : "", part, sizeof part, whole, sizeof whole);
    CHECK((form == CUS_NAME_NONE) == !*part && !*part == !*whole);
    CHECK(strlen(whole) >= strlen(part) && strcmp(whole + strlen(whole) - strlen(part), part) == 0);
    CHECK(cus_name_shown(name, size % 2 ? "*?" : "", shown, 1 + size % 24, cut, sizeof cut) ==
          form);
    CHECK(strlen(shown) <= size % 24 && strncmp(shown, part, strlen(shown)) == 0);
    free(shown);
    // Less room: the same, cut.
    size_t room = 1 + size % 24;
    char *little = static_cast<char *>(malloc(room));
    cus_name_base(name, little, room);
    CHECK(strlen(little) == (b < room ? b : room - 1) &&
          strncmp(little, base, strlen(little)) == 0);
    free(little);
    free(name);
    return 0;
}
