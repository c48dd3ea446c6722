#include "cli.h"

#include <stdlib.h>
#include <string.h>

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
    return ferror(f) ? CLI_FAULT : CLI_OK;
}

int main(int argc, char **argv)
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
