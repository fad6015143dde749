/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/pacer.h"

void pacer_init(Pacer *p, uint64_t window_bytes, uint32_t window_requests)
{
    *p = (Pacer){
            .window_bytes = window_bytes,
            .window_requests = MAX(window_requests, 1U),
            .allowed_requests = MAX(window_requests, 1U),
            .head = UINT64_MAX,
    };
}

void pacer_limit(Pacer *p, uint64_t window_bytes, uint32_t window_requests)
{
    p->window_bytes = MIN(p->window_bytes, window_bytes);
    p->window_requests = MIN(p->window_requests, MAX(window_requests, 1U));
    p->allowed_requests = MIN(p->allowed_requests, p->window_requests);
}

void pacer_restart(Pacer *p)
{
    p->allowed_requests = 1;
    p->n_before = p->in_flight_requests;
}

void pacer_follow(Pacer *p, uint64_t place, bool sweeps)
{
    if (sweeps && place <= p->head)
        pacer_restart(p);
    p->head = place;
}

bool pacer_is_restarting(const Pacer *p)
{
    return p->allowed_requests < p->window_requests;
}

bool pacer_begins_sweep(const Pacer *p)
{
    return pacer_is_restarting(p) && p->in_flight_requests == p->n_before;
}

bool pacer_may_submit(const Pacer *p, uint64_t bytes)
{
    if (p->in_flight_requests == 0)
        return true;
    return p->in_flight_requests < p->allowed_requests && p->in_flight_bytes < p->window_bytes &&
           bytes <= p->window_bytes - p->in_flight_bytes;
}

void pacer_submitted(Pacer *p, uint64_t bytes)
{
    p->in_flight_bytes += bytes;
    p->in_flight_requests++;
}

void pacer_completed(Pacer *p, uint64_t bytes)
{
    p->in_flight_bytes -= MIN(bytes, p->in_flight_bytes);
    p->in_flight_requests -= p->in_flight_requests > 0;
    if (p->n_before > 0)
        p->n_before--;
    else
        p->allowed_requests = p->window_requests;
}
