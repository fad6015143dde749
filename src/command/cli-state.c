/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "command/cli-state.h"

#include "base/clock.h"
#include "command/progress.h"
#include "state/early-pack.h"

#include <unistd.h>

#include "config-paths.h"

/* A verb waits for the lock in steps of at most this time. */
#define LOCK_STEP (250 * USEC_PER_MSEC)

int cli_state_open(const Context *c, bool create, int *ret_fd)
{
    int r = state_directory_open(c->state, create, ret_fd);

    if (r >= 0 || (r == -ENOENT && !create))
        return r;
    if (r == -EACCES && geteuid() != 0)
        return cli_error(r, "%s: %m (run headstart as root)", c->state);
    return cli_error(r, "%s: %m", c->state);
}

int cli_state_lock(const Context *c, int state_fd)
{
    _cleanup_(progress_done) Progress progress =
            progress_start("Waiting for another headstart process", c->quiet);
    usec_t start = clock_now(CLOCK_MONOTONIC), waited = 0;
    usec_t timeout = (c->quiet ? 240 : 5) * USEC_PER_SEC;
    int r = -EBUSY;

    while (r == -EBUSY && waited < timeout) {
        r = state_directory_lock(state_fd, MIN(timeout - waited, LOCK_STEP));
        waited = clock_now(CLOCK_MONOTONIC) - start;
    }
    progress_done(&progress);
    if (r == -EBUSY)
        return cli_error(r,
                         "%s: another headstart process has locked it: try again when it has ended",
                         c->state);
    return r < 0 ? cli_error(r, "%s: cannot lock it: %m", c->state) : 0;
}

int cli_state_write_model(const Context *c, int state_fd, const Model *m)
{
    int r = state_write_model(state_fd, m);

    return r < 0 ? cli_error(r, "%s/" STATE_MODEL ": %m", c->state) : 0;
}

int cli_state_update_early_pack(const Context *c, int state_fd, const void *bytes, size_t size)
{
    int r = early_pack_update(c->system_fd, c->state, state_fd, bytes, size);

    return r < 0 ? cli_error(r,
                             HEADSTART_SYSCONF_DIR ": cannot update the copies for early boot: %m")
                 : 0;
}
