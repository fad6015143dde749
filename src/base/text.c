/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/text.h"

#include <string.h>

size_t text_read_character(const char *s, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = (const unsigned char *)s;
    size_t n = b[0] < 0x80             ? 1
               : (b[0] & 0xe0) == 0xc0 ? 2
               : (b[0] & 0xf0) == 0xe0 ? 3
               : (b[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    uint32_t c = n == 1 ? b[0] : b[0] & (0xffU >> (n + 1));

    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (b[i] & 0x3f);
    }
    if (n == 0 || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *ret = c;
    return n;
}

bool text_is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfdd0 && c <= 0xfdef) ||
           (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c <= 0xe0fff);
}

void text_neutralize(char *s)
{
    char *to = s;

    while (*s) {
        uint32_t c;
        size_t n = text_read_character(s, &c);

        if (n == 0 || text_is_hidden(c))
            *to++ = '?';
        else {
            memmove(to, s, n);
            to += n;
        }
        s += MAX(n, (size_t)1);
    }
    *to = 0;
}
