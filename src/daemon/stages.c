/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/stages-internal.h"

#include <stdlib.h>

StageSource *stage_source_free(StageSource *s)
{
    if (!s)
        return NULL;
    s->free(s);
    free(s);
    return NULL;
}

Stage stage_source_first(const StageSource *s)
{
    return s->first;
}
