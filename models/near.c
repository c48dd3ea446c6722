#include "models/near.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 63, N_NEAR = 3, FAMILY = 3 };

/* Letters to insert, drop or change between two names (Levenshtein 1966). */
static int32_t distance(const char *a, const char *b)
{
    int32_t row[MAX_NAME + 1];
    const int32_t n = (int32_t)strlen(a), m = (int32_t)strlen(b);
    for (int32_t j = 0; j <= m; j++) row[j] = j;
    for (int32_t i = 1; i <= n; i++) {
        int32_t left_above = row[0];
        row[0] = i;
        for (int32_t j = 1; j <= m; j++) {
            const int32_t above = row[j], changed = left_above + (a[i - 1] != b[j - 1]);
            int32_t least = above < row[j - 1] ? above + 1 : row[j - 1] + 1;
            if (changed < least) least = changed;
            left_above = above;
            row[j] = least;
        }
    }
    return row[m];
}

/* Of one family are names that begin alike; without that, a third of the letters may differ. -1: not near. */
static int32_t farness(const char *name, const char *other)
{
    size_t same = 0;
    while (name[same] && name[same] == other[same]) same++;
    const int32_t d = distance(name, other);
    return same >= FAMILY || d * 3 <= (int32_t)strlen(name) ? d : -1;
}

bool qn_arch_near(qn_str name, char *out, size_t n_out)
{
    char text[MAX_NAME + 1];
    const char *near[N_NEAR] = { 0 };
    int32_t far[N_NEAR];
    int n = 0;
    snprintf(text, sizeof text, "%.*s", QN_STR_ARG(name));
    for (int32_t i = 0; i < qn_arch_count(); i++) {
        const char *other = qn_arch_at(i)->name;
        const int32_t d = strlen(other) <= MAX_NAME ? farness(text, other) : -1;
        if (d < 0 || (n == N_NEAR && d >= far[n - 1])) continue;
        int at = n < N_NEAR ? n++ : n - 1;
        for (; at > 0 && far[at - 1] > d; at--) {
            near[at] = near[at - 1];
            far[at] = far[at - 1];
        }
        near[at] = other;
        far[at] = d;
    }
    size_t used = 0;
    for (int i = 0; i < n && used < n_out; i++) used += (size_t)snprintf(out + used, n_out - used, "%s%s", i == 0 ? "" : i == n - 1 ? " and " : ", ", near[i]);
    return n > 0;
}
