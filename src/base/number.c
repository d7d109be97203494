/* number.c - see number.h. */
#include "base/number.h"

#include <errno.h>
#include <stdbool.h>

static size_t digits(char *out, uint64_t number) { /* out: at least 20 bytes; no terminator */
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    for (size_t i = 0; i < count; i++)
        out[i] = reversed[count - 1 - i];
    return count;
}

/* Copies what fits. */
static char *finish(char *out, size_t bytes, const char *text, size_t length) {
    if (bytes == 0) return out;
    if (length > bytes - 1) length = bytes - 1;
    for (size_t i = 0; i < length; i++)
        out[i] = text[i];
    out[length] = '\0';
    return out;
}

static size_t append(char *text, size_t length, const char *more) {
    while (*more)
        text[length++] = *more++;
    return length;
}

char *tly_number_exact(char *out, size_t bytes, uint64_t number) {
    char plain[20], text[TLY_NUMBER_BYTES];
    size_t count = digits(plain, number), length = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && (count - i) % 3 == 0) text[length++] = ',';
        text[length++] = plain[i];
    }
    return finish(out, bytes, text, length);
}

/* round(number * scale / unit) without overflow, half up. */
static uint64_t scaled(uint64_t number, uint64_t scale, uint64_t unit) {
    return (uint64_t)(((unsigned __int128)number * scale + unit / 2) / unit);
}

/* Three significant digits of number / unit. */
static size_t significant(char *text, uint64_t number, uint64_t unit) {
    uint64_t hundredths = scaled(number, 100, unit);
    if (hundredths < 1000) {
        size_t length = digits(text, hundredths / 100);
        text[length++] = '.';
        text[length++] = (char)('0' + hundredths / 10 % 10);
        text[length++] = (char)('0' + hundredths % 10);
        return length;
    }
    uint64_t tenths = scaled(number, 10, unit);
    if (tenths < 1000) {
        size_t length = digits(text, tenths / 10);
        text[length++] = '.';
        text[length++] = (char)('0' + tenths % 10);
        return length;
    }
    return digits(text, scaled(number, 1, unit));
}

/* The unit is the largest that leaves at least 1 before the point, after rounding too ("1.00 MiB", not "1024 KiB"). */
static char *with_unit(char *out, size_t bytes, uint64_t number, uint64_t step, const char *const *names, int count) {
    char text[TLY_NUMBER_BYTES];
    uint64_t unit = 1;
    int i = 0;
    while (i + 1 < count && scaled(number, 1, unit) >= step) {
        unit *= step;
        i++;
    }
    size_t length = i == 0 ? digits(text, number) : significant(text, number, unit);
    length = append(text, length, names[i]);
    return finish(out, bytes, text, length);
}

char *tly_number_size(char *out, size_t bytes, uint64_t size_bytes) {
    static const char *const names[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    return with_unit(out, bytes, size_bytes, 1024, names, 7);
}

char *tly_number_count(char *out, size_t bytes, uint64_t count) {
    static const char *const names[] = {"", " k", " M", " G", " T", " P", " E"};
    return with_unit(out, bytes, count, 1000, names, 7);
}

char *tly_number_percent(char *out, size_t bytes, uint64_t part, uint64_t whole) {
    char text[TLY_NUMBER_BYTES];
    if (whole == 0) return finish(out, bytes, "-", 1);
    uint64_t tenths = scaled(part, 1000, whole);
    if (tenths == 0 && part != 0) return finish(out, bytes, "<0.1 %", 6);
    if (tenths == 1000 && part < whole) tenths = 999; /* 100 % means all of it */
    size_t length = digits(text, tenths / 10);
    text[length++] = '.';
    text[length++] = (char)('0' + tenths % 10);
    length = append(text, length, " %");
    return finish(out, bytes, text, length);
}

static size_t two_digits(char *text, size_t length, uint64_t number) {
    text[length++] = (char)('0' + number / 10 % 10);
    text[length++] = (char)('0' + number % 10);
    return length;
}

char *tly_number_duration(char *out, size_t bytes, uint64_t ns) {
    char text[TLY_NUMBER_BYTES];
    size_t length;
    uint64_t seconds = ns / 1000000000;
    if (ns < 1000) {
        length = append(text, digits(text, ns), " ns");
    } else if (ns < 999500) {
        length = append(text, significant(text, ns, 1000), " us");
    } else if (ns < 999500000) {
        length = append(text, significant(text, ns, 1000000), " ms");
    } else if (seconds < 60) {
        length = append(text, significant(text, ns, 1000000000), " s");
    } else if (seconds < 3600) {
        length = append(text, digits(text, seconds / 60), " min ");
        length = append(text, two_digits(text, length, seconds % 60), " s");
    } else {
        length = append(text, digits(text, seconds / 3600), " h ");
        length = append(text, two_digits(text, length, seconds / 60 % 60), " min");
    }
    return finish(out, bytes, text, length);
}

int tly_number_parse_size(const char *text, uint64_t *out) {
    uint64_t whole = 0, fraction = 0, fraction_unit = 1;
    const char *at = text;
    bool any = false;
    for (; *at >= '0' && *at <= '9'; at++, any = true) {
        if (whole > INT64_MAX / 10) return -EINVAL;
        whole = whole * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        for (at++; *at >= '0' && *at <= '9'; at++, any = true) {
            if (fraction_unit > 100000000) continue; /* beyond a byte's worth */
            fraction = fraction * 10 + (uint64_t)(*at - '0');
            fraction_unit *= 10;
        }
    }
    if (!any) return -EINVAL;
    while (*at == ' ')
        at++;
    static const char prefixes[] = "kmgtpe";
    int power = 0;
    char lower = (char)(*at | 0x20);
    for (int i = 0; prefixes[i]; i++) {
        if (lower == prefixes[i]) power = i + 1;
    }
    if (power) {
        at++;
        if (*at == 'i' && (at[1] == 'B' || at[1] == 'b')) at++;
    }
    if (*at == 'B' || *at == 'b') at++;
    if (*at != '\0') return -EINVAL;
    unsigned __int128 unit = (unsigned __int128)1 << (10 * power);
    unsigned __int128 value = whole * unit + fraction * unit / fraction_unit;
    if (value > INT64_MAX) return -EINVAL;
    *out = (uint64_t)value;
    return 0;
}
