/*
 * UTF-8, and which characters may be shown. By Unicode, the C1 controls are U+0080 to U+009F, and
 * the marks of the bidirectional algorithm are those of UAX 9.
 */
#include "shim/base/clean.h"

static const struct {
    uint32_t first, last;
} hidden[] = {
    {0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x61c, 0x61c},   {0x180e, 0x180e},
    {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfeff, 0xfeff}, {0xfff0, 0xfffb},
    {0xfffe, 0xffff}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool cus_is_shown(uint32_t code) {
    for (unsigned i = 0; i < sizeof hidden / sizeof *hidden && hidden[i].first <= code; i++)
        if (code <= hidden[i].last)
            return false;
    return true;
}

size_t cus_utf8(const char *at, size_t left, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)at;
    size_t bytes = !left || byte[0] > 0xf4 ? 0
                   : byte[0] < 0x80        ? 1
                   : byte[0] < 0xc2        ? 0
                   : byte[0] < 0xe0        ? 2
                   : byte[0] < 0xf0        ? 3
                                           : 4;
    if (!bytes || bytes > left)
        return 0;
    uint32_t c = bytes == 1 ? byte[0] : byte[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (byte[i] & 0x3f);
    }
    if (c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *code = c;
    return bytes;
}

size_t cus_shown(const char *at, size_t left) {
    uint32_t code;
    size_t bytes = cus_utf8(at, left, &code);
    return bytes && cus_is_shown(code) ? bytes : 0;
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
