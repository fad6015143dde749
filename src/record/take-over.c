/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/take-over.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/handover.h"

#include <limits.h>
#include <systemd/sd-daemon.h>

/* Takes the descriptors out of the store of systemd, where the initrd has put them. The store keeps
 * copies until it gets a message to close them. Returns what handover_from_descriptors() returns,
 * or -ENOENT if the store holds no descriptors. */
static int claim_from_store(Handover *ret)
{
    static const char *const removals[] = {"FDSTOREREMOVE=1\nFDNAME=" HANDOVER_NAME_GROUP,
                                           "FDSTOREREMOVE=1\nFDNAME=" HANDOVER_NAME_CONNECTOR,
                                           "FDSTOREREMOVE=1\nFDNAME=" HANDOVER_NAME_FACTS};
    int fds[HANDOVER_DESCRIPTORS_MAX];
    char **names = NULL;
    int n = sd_listen_fds_with_names(true, &names), r;

    if (n <= 0)
        return n < 0 ? n : -ENOENT;
    n = MIN(n, HANDOVER_DESCRIPTORS_MAX);
    for (int i = 0; i < n; i++)
        fds[i] = SD_LISTEN_FDS_START + i;
    r = handover_from_descriptors(fds, names, n, ret);
    for (int i = 0; names[i]; i++)
        free(names[i]);
    free(names);
    if (r != -ENOENT)
        for (size_t i = 0; i < ELEMENTSOF(removals); i++)
            (void)sd_notify(false, removals[i]);
    return r;
}

int take_over_recording(const char *run_dir, Observer *observer, Moment *ret_start)
{
    _cleanup_handover_ Handover h = HANDOVER_NULL;
    char path[PATH_MAX + sizeof(HANDOVER_SOCKET) + 1];
    int r = claim_from_store(&h);

    if (r == -ENOENT) {
        snprintf(path, sizeof(path), "%s/" HANDOVER_SOCKET, run_dir);
        r = handover_claim(path, &h);
    }
    if (r >= 0)
        r = fanotify_adopt(h.fanotify_fd, h.by_descriptor, &observer->fanotify);
    if (r == -EPROTO)
        log_warning("The initrd is of another version of headstart: a new recording starts. Build "
                    "the initrd again");
    else if (r < 0 && r != -ENOENT && r != -ECONNREFUSED)
        log_warning_errno(r, "Cannot take over the recording since the mount of the root "
                             "filesystem, starting a new recording: %m");
    if (r < 0)
        return 0;
    TAKE_FD(h.fanotify_fd);
    observer->connector_fd = TAKE_FD(h.connector_fd);
    *ret_start = h.start;
    /* The wall clock may have been set since the start. */
    ret_start->realtime =
            clock_now(CLOCK_REALTIME) - (clock_now(CLOCK_BOOTTIME) - h.start.boottime);
    return 1;
}
