/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens of files, as the recorder logs them. */

#include "observe/event-log.h"
#include "observe/user-shares.h"
#include "util/root-util.h"

/* Logs that the user opens the files "/FIRST", "/FIRST+1", …, n in all. */
static inline void log_opens(EventLog *log, UserShares *shares, uint32_t uid, unsigned first,
                             unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        LoggedEvent e = {.run = UINT32_MAX, .user = user_shares_row(shares, uid)};
        char name[16];
        LoggedObject o = {.name = name};

        o.name_size = (uint16_t)snprintf(name, sizeof(name), "/%u", first + i);
        assert_int_equal(event_log_intern(log, &o, true, &e.object), 0);
        assert_int_equal(event_log_add(log, &e), 0);
    }
}
