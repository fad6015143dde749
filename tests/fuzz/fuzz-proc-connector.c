/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Messages of the process connector. A socket pair replaces the netlink socket. In the input four
 * bytes precede each message: its size and the PID of a process, two bytes each. After the message
 * this process opens a file, and the batch ends. */

#include "fuzz.h"

#include "observe/proc-connector.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool name_process(void *arg, uint32_t pid, uint32_t *ret_object, bool *ret_own)
{
    *ret_object = pid % 16;
    return pid % 2;
}

static uint32_t keep_object(uint32_t object, void *arg)
{
    return object % 3 == 0 ? PROCESS_NONE : object;
}

static void check_table(ProcessTable *t)
{
    const ProcessRun *runs;
    size_t n;

    runs = process_table_runs(t, &n);
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(runs[i].same_as == PROCESS_NONE || runs[i].same_as < n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ProcessTable *t = process_table_new();
    uint64_t lost = 0;
    usec_t now = 1000;
    int fds[2], n_events = 0;

    FUZZ_CHECK(t && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    FUZZ_CHECK(process_table_add(t, 1, 1, 0, 0, false) >= 0);
    while (size >= 4) {
        size_t length = MIN((size_t)(data[0] | data[1] << 8), size - 4);
        uint32_t pid = (uint32_t)(data[2] | data[3] << 8), run;
        int r;

        FUZZ_CHECK(send(fds[1], data + 4, MIN(length, 8192U), 0) >= 0);
        r = proc_connector_drain(fds[0], t, 1000, &lost);
        FUZZ_CHECK(r >= 0);
        n_events += r;
        FUZZ_CHECK(process_table_open(t, pid, pid % 8, pid >> 8 & 31, now++, &run) >= 0);
        process_table_settle(t, name_process, NULL);
        check_table(t);
        data += 4 + length;
        size -= 4 + length;
    }
    FUZZ_CHECK(process_table_compact(t, 3, keep_object, NULL) >= 0);
    check_table(t);
    FUZZ_CHECK(process_table_new_stage(t, keep_object, NULL) >= 0);
    check_table(t);
    fuzz_count(n_events > 0);
    process_table_free(t);
    close(fds[0]);
    close(fds[1]);
    return 0;
}

/* Adds a well-formed message with small PIDs, or changes bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const uint32_t kinds[] = {PROC_EVENT_FORK, PROC_EVENT_EXEC, PROC_EVENT_UID,
                                     PROC_EVENT_EXIT};
    FuzzRandom random = {seed}, *r = &random;
    struct {
        struct nlmsghdr header;
        struct cn_msg message;
    } head = {0};
    struct proc_event event = {0}; /* it follows the head without padding */
    uint32_t *pids = (uint32_t *)&event.event_data;
    uint16_t prefix[2] = {sizeof(head) + sizeof(event),
                          (uint16_t)(fuzz_below(r, 8) | fuzz_below(r, 32) << 8)};

    if (fuzz_below(r, 3) == 0 || size + sizeof(prefix) + prefix[0] > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    head.header.nlmsg_len = NLMSG_LENGTH(sizeof(head.message) + sizeof(event));
    head.message.id.idx = CN_IDX_PROC;
    head.message.len = sizeof(event);
    event.what = kinds[fuzz_below(r, ELEMENTSOF(kinds))];
    event.timestamp_ns = fuzz_number(r);
    for (size_t i = 0; i < 4; i++)
        pids[i] = (uint32_t)fuzz_below(r, 8);
    if (fuzz_below(r, 2) == 0) /* a process, not a thread */
        pids[1] = pids[0], pids[3] = pids[2];
    memcpy(data + size, prefix, sizeof(prefix));
    memcpy(data + size + sizeof(prefix), &head, sizeof(head));
    memcpy(data + size + sizeof(prefix) + sizeof(head), &event, sizeof(event));
    return size + sizeof(prefix) + prefix[0];
}
