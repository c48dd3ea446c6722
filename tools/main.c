#include "cli.h"
#include "cli_interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_order(const void *a, const void *b)
{
    return (*(const qn_cmd *const *)a)->order - (*(const qn_cmd *const *)b)->order;
}

static int help(FILE *f)
{
    const qn_cmd *list[64];
    int n = 0;
    for (; n < cli_cmd_count() && n < 64; n++) list[n] = cli_cmd_at(n);
    qsort(list, (size_t)n, sizeof *list, by_order);
    fprintf(f, "usage: quern COMMAND [OPTION]...\n\nRun large language models from GGUF files on this machine's CPU.\n\n");
    for (int i = 0; i < n; i++) fprintf(f, "  %-12s %s\n", list[i]->name, list[i]->summary);
    fprintf(f, "\n'quern COMMAND --help' explains each. 'quern --version' prints the version.\n");
    return CLI_OK;
}

/* Where stdin, stdout or stderr is closed, the next file opened would take its number, and messages would go into a saved chat. Something
 * that fails as a closed one does stands there instead: opened the wrong way round. */
static bool hold_standard_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return false;
    return true;
}

/* What a command has printed and not flushed may still fail: a full disk is told, whichever the command. */
static int finish_stdout(int code)
{
    errno = 0;
    const bool bad = ferror(stdout) || fflush(stdout);
    return bad && code == CLI_OK ? cli_fault("cannot write to stdout: %s", errno ? strerror(errno) : "an earlier write failed") : code;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) return help(stdout);
    if (!strcmp(name, "--version")) {
        printf("quern %s\n", qn_version());
        return CLI_OK;
    }
    if (!strcmp(name, "help")) {
        if (argc < 3) return help(stdout);
        char *again[] = { argv[2], (char *)"--help", NULL };
        const qn_cmd *c = cli_cmd_find(argv[2]);
        return c ? c->run(2, again) : cli_usage("no command '%s'; 'quern --help' lists them", argv[2]);
    }
    const qn_cmd *c = cli_cmd_find(name);
    if (!c) return cli_usage("no command '%s'; 'quern --help' lists them", name);
    return c->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    if (!hold_standard_streams()) return CLI_FAULT; /* there may be nowhere to say why */
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is met as a full disk: told, and cleaned up after */
    const int code = finish_stdout(dispatch(argc, argv));
    return code == CLI_INTERRUPTED ? cli_interrupt_code() : code;
}
