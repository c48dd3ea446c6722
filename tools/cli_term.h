/* What goes to a terminal: colour where it is wanted, and no byte of a model's output that a terminal would obey. */
#ifndef QUERN_CLI_TERM_H
#define QUERN_CLI_TERM_H

#include "cli.h"

/** Colour is for terminals, unless NO_COLOR is set (no-color.org) or TERM is "dumb". */
bool cli_wants_colour(FILE *f);

/**
 * Write text of a model and flush. On a terminal, control characters other than newline and tab (C0, DEL, C1) are left out: they could
 * move the cursor, retitle the window or answer for the user. Elsewhere the bytes are written as they are.
 * @param text  whole UTF-8 characters
 * @return false when it could not be written
 */
bool cli_write_text(FILE *f, const char *text, size_t n);

/** Bytes as UTF-8, invalid ones as U+FFFD: [*n_out] and a NUL, for free(); NULL without memory. */
char *cli_utf8_clean(const char *bytes, size_t n, size_t *n_out);

#endif
