/* Ctrl-C: stops what runs, then says so. */
#ifndef QUERN_CLI_INTERRUPT_H
#define QUERN_CLI_INTERRUPT_H

#include "quern.h"

/** From now on SIGINT is noted, and cancels the watched session. A third one before cli_interrupt_clear ends the program with 130, so
 *  that one that hangs can be left, and two in haste do not lose a conversation. */
void cli_interrupt_catch(void);
/** SIGTERM and SIGHUP too: for a command that has a file to remove before it ends. */
void cli_interrupt_catch_ends(void);
/** The exit code that tells the signal: 130 for SIGINT. */
int cli_interrupt_code(void);
/** The session that a SIGINT cancels; NULL: none. */
void cli_interrupt_watch(qn_session *s);
bool cli_interrupted(void);
/** A signal came that asks to end (cli_interrupt_catch_ends), not to stop what runs. It stays so. */
bool cli_interrupt_is_end(void);
void cli_interrupt_clear(void);

#endif
