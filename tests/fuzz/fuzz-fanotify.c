/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The result of read(2) of a fanotify group. The first byte selects the mode; the rest is the
 * buffer, as the kernel fills it. A file in memory replaces the group. The events are added to an
 * event log (observe/event-log.h). */

/* The source is included because the target calls a static function and adds watches to the struct.
 * The functions of the header add a watch only together with a mark in the kernel. */
#include "observe/fanotify-drain.c" // NOLINT(bugprone-suspicious-include)

#include "fuzz.h"

static uint64_t n_events;

static int on_open(void *arg, const LoggedObject *object, uint32_t pid, bool exec)
{
    EventLog *log = arg;
    LoggedObject stored;
    uint32_t number;
    int r = event_log_intern(log, object, true, &number);

    n_events++;
    FUZZ_CHECK(r >= 0 || r == -EINVAL || r == -E2BIG);
    if (r < 0)
        return 0;
    event_log_object(log, number, &stored);
    FUZZ_CHECK(stored.name_size == object->name_size && stored.name[stored.name_size] == 0);
    FUZZ_CHECK(memcmp(stored.name, object->name, stored.name_size) == 0);
    return event_log_add(log, &(LoggedEvent){.object = number, .run = pid, .kind = exec});
}

static int before(void *arg)
{
    return 0;
}

/* Descriptors given to events of the current input. After an error the recorder ends without
 * closing the descriptors of the events that it has not read, so this program closes them. */
static int opened[4096];
static size_t n_opened;

/* Replaces the descriptors in the input. The kernel would return open descriptors of this process,
 * and the numbers in the input are arbitrary. */
static void own_descriptors(uint8_t *data, size_t size)
{
    for (size_t at = 0; size - at >= sizeof(struct fanotify_event_metadata);) {
        struct fanotify_event_metadata m;

        memcpy(&m, data + at, sizeof(m));
        m.fd = m.fd % 2 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (m.fd >= 0 && n_opened < ELEMENTSOF(opened))
            opened[n_opened++] = m.fd;
        memcpy(data + at, &m, sizeof(m));
        if (m.event_len < sizeof(m) || m.event_len > size - at)
            return;
        at += m.event_len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ uint8_t *copy = malloc(size + 1);
    EventLog *log = event_log_new();
    bool by_descriptor = size > 0 && data[0] & 1;
    uint64_t overflows = 0;
    struct stat st;
    Fanotify *f;
    int fd, r;

    FUZZ_CHECK(copy && log && stat("/dev/null", &st) == 0);
    if (size > 0)
        memcpy(copy, data + 1, --size);
    if (by_descriptor)
        own_descriptors(copy, size);
    fd = fuzz_memory_file(copy, size);
    FUZZ_CHECK(fanotify_of_group(fd, true, &f) >= 0);
    FUZZ_CHECK(grow_array(&f->watches, &f->allocated_watches, 2, sizeof(Watch)) >= 0);
    f->watches[f->n_watches++] = (Watch){.number = 7, .mount_fd = -EBADF};
    f->watches[f->n_watches++] =
            (Watch){.number = 8, .mount_fd = -EBADF, .st_dev = st.st_dev, .by_descriptor = true};
    n_events = 0;
    r = drain_group(f, fd, by_descriptor,
                    &(Sink){before, on_open, log, &overflows, FANOTIFY_DRAIN_EVENTS});
    fuzz_count(r > 0 && n_events > 0);
    while (n_opened > 0)
        close(opened[--n_opened]);
    event_log_free(log);
    fanotify_free(f);
    return 0;
}
