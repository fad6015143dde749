/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate/simulate.h"

#include <string.h>

#define SIMULATE_TABLE_MAX (1U << 28)

void simulate_input_done(SimulateInput *in)
{
    free(in->events);
    free(in->object_bytes);
    free(in->items);
    free(in->parts);
    *in = (SimulateInput){0};
}

int simulate_add_object(SimulateInput *in, uint64_t bytes, uint32_t *ret)
{
    int r;

    if (in->n_objects >= SIMULATE_TABLE_MAX)
        return -E2BIG;
    r = grow_array(&in->object_bytes, &in->allocated_object_bytes, in->n_objects + 1,
                   sizeof(*in->object_bytes));
    if (r < 0)
        return r;
    in->object_bytes[in->n_objects] = bytes;
    *ret = (uint32_t)in->n_objects++;
    return 0;
}

int simulate_add_item(SimulateInput *in, const uint32_t *objects, size_t n, uint32_t *ret)
{
    int r;

    if (in->n_items >= PREDICTOR_ITEMS_MAX || n > SIMULATE_TABLE_MAX - in->n_parts)
        return -E2BIG;
    r = grow_array(&in->items, &in->allocated_items, in->n_items + 1, sizeof(*in->items));
    if (r < 0)
        return r;
    r = grow_array(&in->parts, &in->allocated_parts, in->n_parts + n, sizeof(*in->parts));
    if (r < 0)
        return r;
    if (n > 0)
        memcpy(in->parts + in->n_parts, objects, n * sizeof(*objects));
    in->items[in->n_items] = (ItemParts){(uint32_t)in->n_parts, (uint32_t)n};
    in->n_parts += n;
    *ret = (uint32_t)in->n_items++;
    return 0;
}

int simulate_add_event(SimulateInput *in, const SimulateEvent *event)
{
    int r;

    if (in->n_events >= SIMULATE_TABLE_MAX)
        return -E2BIG;
    r = grow_array(&in->events, &in->allocated_events, in->n_events + 1, sizeof(*in->events));
    if (r < 0)
        return r;
    in->events[in->n_events++] = *event;
    return 0;
}
