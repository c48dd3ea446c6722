#include "cli_interrupt.h"

#include "cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { IMPATIENT = 2 };
static volatile sig_atomic_t n_caught, last_caught = SIGINT;
static _Atomic(qn_session *) watched;

static void on_interrupt(int sig)
{
    last_caught = sig;
    if (++n_caught > IMPATIENT) _exit(128 + sig);
    qn_session *s = atomic_load(&watched);
    if (s) qn_session_cancel(s);
}

void cli_interrupt_catch(void)
{
    struct sigaction a = { .sa_handler = on_interrupt }; /* no SA_RESTART: a read of the terminal returns */
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
}

void cli_interrupt_catch_ends(void)
{
    struct sigaction a = { .sa_handler = on_interrupt };
    sigemptyset(&a.sa_mask);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
}

int cli_interrupt_code(void)
{
    return 128 + last_caught;
}

void cli_interrupt_watch(qn_session *s)
{
    atomic_store(&watched, s);
}

bool cli_interrupted(void)
{
    return n_caught > 0;
}

bool cli_interrupt_is_end(void)
{
    return last_caught != SIGINT;
}

void cli_interrupt_clear(void)
{
    n_caught = 0;
}
