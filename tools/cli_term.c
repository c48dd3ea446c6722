#include "cli_term.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_wants_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(f)) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

/* Length of the control character at p, else 0. C1 is U+0080 to U+009F: c2 80 to c2 9f. */
static size_t control_at(const unsigned char *p, size_t n)
{
    if ((p[0] < 0x20 && p[0] != '\n' && p[0] != '\t') || p[0] == 0x7f) return 1;
    return p[0] == 0xc2 && n > 1 && p[1] >= 0x80 && p[1] <= 0x9f ? 2 : 0;
}

bool cli_write_text(FILE *f, const char *text, size_t n)
{
    if (!isatty(fileno(f))) return fwrite(text, 1, n, f) == n && fflush(f) == 0;
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0, skip; i < n; i += skip ? skip : 1) {
        skip = control_at(p + i, n - i);
        if (!skip) putc(p[i], f);
    }
    return fflush(f) == 0 && !ferror(f);
}

/* Bytes of the character at p; 0 where it is invalid, with *bad the bytes that one replacement stands for. */
static size_t character_at(const unsigned char *p, size_t n, size_t *bad)
{
    const unsigned char b = p[0];
    *bad = 1;
    if (b < 0x80) return 1;
    if (b < 0xc2 || b > 0xf4) return 0;
    const size_t len = b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    unsigned char lo = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80, hi = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < len; i++) {
        *bad = i;
        if (i == n || p[i] < lo || p[i] > hi) return 0;
        lo = 0x80;
        hi = 0xbf;
    }
    return len;
}

char *cli_utf8_clean(const char *bytes, size_t n, size_t *n_out)
{
    const unsigned char *p = (const unsigned char *)bytes;
    if (n > SIZE_MAX / 3 - 1) return NULL;
    char *out = malloc(3 * n + 1), *o = out;
    if (!out) return NULL;
    for (size_t i = 0, bad; i < n;) {
        const size_t len = character_at(p + i, n - i, &bad);
        memcpy(o, len ? bytes + i : "\xef\xbf\xbd", len ? len : 3);
        o += len ? len : 3;
        i += len ? len : bad;
    }
    *o = 0;
    *n_out = (size_t)(o - out);
    return out;
}
