/*
 * What may be shown. Unicode: C1 controls are U+0080 to U+009F; the marks of the bidirectional
 * algorithm (UAX 9) U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069; separators U+2028
 * and U+2029.
 */
#include "shim/base/clean.h"

#include <stdbool.h>
#include <stdint.h>

static bool is_obeyed(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

size_t cus_shown(const char *at, size_t left) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)at;
    if (!left)
        return 0;
    if (byte[0] < 0x80)
        return !is_obeyed(byte[0]);
    size_t bytes = byte[0] < 0xc2   ? 0
                   : byte[0] < 0xe0 ? 2
                   : byte[0] < 0xf0 ? 3
                   : byte[0] < 0xf5 ? 4
                                    : 0;
    if (!bytes || bytes > left)
        return 0;
    uint32_t c = byte[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (byte[i] & 0x3f);
    }
    bool sound = c >= least[bytes] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    return sound && !is_obeyed(c) ? bytes : 0;
}

size_t cus_clean(char *text, size_t bytes) {
    for (size_t i = 0; i < bytes;) {
        size_t n = cus_shown(text + i, bytes - i);
        if (!n)
            text[i] = text[i] == '\n' ? ' ' : '?';
        i += n ? n : 1;
    }
    return bytes;
}
