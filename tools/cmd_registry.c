#include "cli.h"

#include <string.h>

#define QN_CMD(n) extern const qn_cmd qn_cmd_##n;
#include "cmd_list.inc"
#undef QN_CMD

static const qn_cmd *const cmds[] = {
#define QN_CMD(n) &qn_cmd_##n,
#include "cmd_list.inc"
#undef QN_CMD
};

int cli_cmd_count(void)
{
    return (int)(sizeof cmds / sizeof *cmds);
}

const qn_cmd *cli_cmd_at(int i)
{
    return cmds[i];
}

const qn_cmd *cli_cmd_find(const char *name)
{
    for (int i = 0; i < cli_cmd_count(); i++)
        if (!strcmp(cmds[i]->name, name)) return cmds[i];
    return NULL;
}
