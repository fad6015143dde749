/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/stages-internal.h"

#include <errno.h>
#include <stdlib.h>

StageSource *stage_source_free(StageSource *s)
{
    if (!s)
        return NULL;
    s->free(s);
    free(s);
    return NULL;
}

int stage_source_start_unit(StageSource *s, const char *unit)
{
    return s->start_unit ? s->start_unit(s, unit) : -EOPNOTSUPP;
}

BootTimes stage_source_boot_times(const StageSource *s)
{
    return s->boot_times ? s->boot_times(s) : (BootTimes){0};
}

Stage stage_source_first(const StageSource *s)
{
    return s->first;
}
