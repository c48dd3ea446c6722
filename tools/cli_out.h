/* Files that are there whole or not at all. */
#ifndef QUERN_CLI_OUT_H
#define QUERN_CLI_OUT_H

#include "cli.h"

typedef struct cli_out {
    FILE *f;
    const char *path;    /* borrowed                                                                */
    char *partial;       /* where it is written until it is whole; NULL: straight to path           */
} cli_out;

/** "-" is stdout. What is there and is no regular file (a device, a pipe) is written straight; else PATH.part-<process>, a file of its own, until
 *  cli_out_commit gives it its name. @return false after a message */
bool cli_out_open(cli_out *o, const char *path);
/** Refuse to write over one of the files that are read, under whatever name. @param in  [n] paths; NULL and "-" are none
 *  @return -1 to go on, else the exit code, after a message */
int cli_out_check(const char *path, const char *const *in, size_t n);
/** Flush to the disk and take the name. @return false after a message, with nothing left behind */
bool cli_out_commit(cli_out *o);
/** Leave nothing behind. Does nothing once committed. */
void cli_out_abort(cli_out *o);

#endif
