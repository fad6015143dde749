#include "cli/cli.h"
static int run(Context *c)
{
    const char *v;
    int k;
    while ((k = cli_next_option(c, &v)) > 0)
        ;
    return k < 0 ? k : cli_error(ENOSYS, "not built yet");
}
const Verb verb_plan = {.name = "plan", .arguments = "", .summary = "plan", .run = run};
