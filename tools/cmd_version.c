#include "cli.h"

static int run(int argc, char **argv)
{
    cli_opt opts[] = { { 0 } };
    const int code = cli_parse(argc, argv, "version", "Print the version, and the instruction set levels that this CPU can run.", opts);
    if (code >= 0) return code;
    const char *levels[16];
    const int32_t n = qn_cpu_levels(levels, 16);
    printf("quern %s\nlevels:", qn_version());
    for (int32_t i = 0; i < n && i < 16; i++) printf(" %s", levels[i]);
    printf("\n");
    return CLI_OK;
}

extern const qn_cmd qn_cmd_version;
const qn_cmd qn_cmd_version = { "version", "print the version and the CPU levels this machine runs", 90, run };
