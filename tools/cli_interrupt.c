#include "cli_interrupt.h"

#include "cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { IMPATIENT = 2 };
static volatile sig_atomic_t n_caught;
static _Atomic(qn_session *) watched;

static void on_interrupt(int sig)
{
    (void)sig;
    if (++n_caught > IMPATIENT) _exit(CLI_INTERRUPTED);
    qn_session *s = atomic_load(&watched);
    if (s) qn_session_cancel(s);
}

void cli_interrupt_catch(void)
{
    struct sigaction a = { .sa_handler = on_interrupt }; /* no SA_RESTART: a read of the terminal returns */
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
}

void cli_interrupt_watch(qn_session *s)
{
    atomic_store(&watched, s);
}

bool cli_interrupted(void)
{
    return n_caught > 0;
}

void cli_interrupt_clear(void)
{
    n_caught = 0;
}
