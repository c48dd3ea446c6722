/* strftime of UTC with English names, so that a prompt depends on neither the host's locale nor its time zone. */
#include "src/chat/jvm.h"

#include <stdio.h>
#include <string.h>

typedef struct date {
    int64_t year;
    int month, day, hour, minute, second; /* month, day from 1                                    */
    int weekday, yearday;                 /* from Sunday and January 1, both 0                      */
} date;

static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                      "July",    "August",   "September", "October", "November", "December" };
static const char *const days[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };

static bool leap(int64_t y)
{
    return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

/* The proleptic Gregorian calendar, counted in eras of 400 years from March 1, year 0. */
static date date_of(int64_t seconds)
{
    int64_t day = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) rest += 86400, day--;
    date d = { .hour = (int)(rest / 3600), .minute = (int)(rest / 60 % 60), .second = (int)(rest % 60) };
    d.weekday = (int)(((day % 7) + 11) % 7);
    const int64_t z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    d.day = (int)(doy - (153 * mp + 2) / 5 + 1);
    d.month = (int)(mp < 10 ? mp + 3 : mp - 9);
    d.year = yoe + era * 400 + (d.month <= 2);
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    d.yearday = before[d.month - 1] + d.day - 1 + (d.month > 2 && leap(d.year));
    return d;
}

/* ISO 8601 week, and the year it belongs to. */
static int iso_week(const date *d, int64_t *year)
{
    const int monday = (d->weekday + 6) % 7;
    int week = (d->yearday - monday + 10) / 7;
    *year = d->year;
    if (week < 1) {
        --*year;
        const int last = d->yearday + (leap(*year) ? 366 : 365);
        week = (last - monday + 10) / 7;
    } else if (week == 53 && (d->yearday - monday + 3) >= (leap(d->year) ? 366 : 365)) {
        week = 1;
        ++*year;
    }
    return week;
}

static bool put_number(qn_jbuf *b, int64_t v, int width, char pad)
{
    char text[32];
    snprintf(text, sizeof text, pad == ' ' ? "%*lld" : "%0*lld", pad ? width : 1, (long long)v);
    return qn_jbuf_lit(b, text);
}

static bool put(qn_jbuf *b, const date *d, int64_t now, char c, char pad);

static bool put_all(qn_jbuf *b, const date *d, int64_t now, const char *format)
{
    for (; *format; format++)
        if (!(*format == '%' ? put(b, d, now, *++format, '0') : qn_jbuf_add(b, format, 1, false))) return false;
    return true;
}

/* One conversion; pad: '0', ' ', or 0 for none ("%-d"). */
static bool put(qn_jbuf *b, const date *d, int64_t now, char c, char pad)
{
    const int hour12 = d->hour % 12 ? d->hour % 12 : 12;
    char text[4] = { '%', c, 0, 0 };
    int64_t year;
    const int week = iso_week(d, &year);
    switch (c) {
    case 'a': return qn_jbuf_add(b, days[d->weekday], 3, false);
    case 'A': return qn_jbuf_lit(b, days[d->weekday]);
    case 'h':
    case 'b': return qn_jbuf_add(b, months[d->month - 1], 3, false);
    case 'B': return qn_jbuf_lit(b, months[d->month - 1]);
    case 'c': return put_all(b, d, now, "%a %b %e %H:%M:%S %Y");
    case 'C': return put_number(b, d->year / 100, 2, pad);
    case 'd': return put_number(b, d->day, 2, pad);
    case 'D':
    case 'x': return put_all(b, d, now, "%m/%d/%y");
    case 'e': return put_number(b, d->day, 2, pad == '0' ? ' ' : pad);
    case 'f': return qn_jbuf_lit(b, "000000");
    case 'F': return put_all(b, d, now, "%Y-%m-%d");
    case 'g': return put_number(b, year % 100, 2, pad);
    case 'G': return put_number(b, year, 1, pad);
    case 'H': return put_number(b, d->hour, 2, pad);
    case 'I': return put_number(b, hour12, 2, pad);
    case 'j': return put_number(b, d->yearday + 1, 3, pad);
    case 'k': return put_number(b, d->hour, 2, pad == '0' ? ' ' : pad);
    case 'l': return put_number(b, hour12, 2, pad == '0' ? ' ' : pad);
    case 'm': return put_number(b, d->month, 2, pad);
    case 'M': return put_number(b, d->minute, 2, pad);
    case 'n': return qn_jbuf_lit(b, "\n");
    case 'p': return qn_jbuf_lit(b, d->hour < 12 ? "AM" : "PM");
    case 'P': return qn_jbuf_lit(b, d->hour < 12 ? "am" : "pm");
    case 'r': return put_all(b, d, now, "%I:%M:%S %p");
    case 'R': return put_all(b, d, now, "%H:%M");
    case 's': return put_number(b, now, 1, pad);
    case 'S': return put_number(b, d->second, 2, pad);
    case 't': return qn_jbuf_lit(b, "\t");
    case 'T':
    case 'X': return put_all(b, d, now, "%H:%M:%S");
    case 'u': return put_number(b, d->weekday ? d->weekday : 7, 1, pad);
    case 'U': return put_number(b, (d->yearday + 7 - d->weekday) / 7, 2, pad);
    case 'V': return put_number(b, week, 2, pad);
    case 'w': return put_number(b, d->weekday, 1, pad);
    case 'W': return put_number(b, (d->yearday + 7 - (d->weekday + 6) % 7) / 7, 2, pad);
    case 'y': return put_number(b, ((d->year % 100) + 100) % 100, 2, pad);
    case 'Y': return put_number(b, d->year, 1, pad);
    case 'z':
    case 'Z': return true; /* the time has no zone */
    case '%': return qn_jbuf_lit(b, "%");
    default: return qn_jbuf_add(b, text, 2, false);
    }
}

bool qn_jbuf_strftime(qn_jbuf *b, int64_t now, const qn_jstr *format)
{
    if (now < -62135596800 || now > 253402300799) return qn_jvm_fail(b->vm, "the time is outside the years 1 to 9999");
    const date d = date_of(now);
    for (size_t i = 0; i < format->n; i++) {
        if (format->p[i] != '%') {
            if (!qn_jbuf_sub(b, format, i, i + 1)) return false;
            continue;
        }
        char pad = '0';
        if (i + 1 < format->n && strchr("-_0", format->p[i + 1])) {
            const char flag = format->p[++i];
            pad = flag == '-' ? 0 : flag == '_' ? ' ' : '0';
        }
        if (++i == format->n) return qn_jbuf_lit(b, "%");
        if (!put(b, &d, now, format->p[i], pad)) return false;
    }
    return true;
}
