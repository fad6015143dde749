/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NSEC_USEC UINT64_C(1000)
#define NSEC_SEC  UINT64_C(1000000000)
#define BLOCK     UINT64_C(4096)

/* The blocks that differ from the image, kept under a name by `save NAME` and restored by `reset
 * NAME`. */
struct Saved {
    Saved *next;
    char *name;
    unsigned char *written; /* as Device.written */
    char *blocks;           /* the contents of the written blocks, one after the other */
};

static void saved_free(Saved *s)
{
    if (!s)
        return;
    free(s->name);
    free(s->written);
    free(s->blocks);
    free(s);
}

static uint64_t now_nsec(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NSEC_SEC + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t nsec)
{
    struct timespec ts = {.tv_sec = (time_t)(nsec / NSEC_SEC), .tv_nsec = (long)(nsec % NSEC_SEC)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

int device_open(Device *d, const DiskProfile *profile, const char *image, const char *log)
{
    struct stat st;

    *d = (Device){.lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};
    int fd = open(image, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 4096) {
        close(fd);
        return -EINVAL;
    }
    d->size = (uint64_t)st.st_size;
    d->data = mmap(NULL, d->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    int r = errno;
    close(fd);
    if (d->data == MAP_FAILED) {
        d->data = NULL;
        return -r;
    }
    d->written = calloc(1, d->size / BLOCK / 8 + 1);
    if (!d->written)
        return -ENOMEM;

    d->disk = disk_init(profile, d->size);
    if (disk_granules(profile, d->size) > 0) {
        d->disk.touched = calloc(disk_granules(profile, d->size), sizeof(bool));
        if (!d->disk.touched)
            return -ENOMEM;
    }
    d->start_nsec = now_nsec();
    if (log) {
        d->log = fopen(log, "we");
        if (!d->log)
            return -errno;
        fprintf(d->log, "# disksim profile=%s stroke=%" PRIu64 "\n", profile->name, d->size);
    }
    return 0;
}

int device_close(Device *d)
{
    int r = 0;

    if (d->log && (ferror(d->log) | fclose(d->log)) != 0)
        r = -EIO;
    if (d->writes && (ferror(d->writes) | fclose(d->writes)) != 0)
        r = -EIO;
    if (d->data)
        munmap(d->data, d->size);
    free(d->pending.requests);
    free(d->pending.reqs);
    free(d->held.requests);
    free(d->held.reqs);
    free(d->written);
    free(d->disk.touched);
    while (d->saved) {
        Saved *next = d->saved->next;
        saved_free(d->saved);
        d->saved = next;
    }
    d->written = NULL;
    d->disk.touched = NULL;
    d->log = d->writes = NULL;
    d->data = NULL;
    d->pending = d->held = (Pending){};
    return r;
}

/* Called with the lock held. */
static void account(Device *d, const DiskRequest *r, const DiskService *service, size_t depth)
{
    d->reads++;
    d->read_bytes += r->length;
    if (service)
        d->busy_nsec += service->finish_nsec - service->start_nsec;
    if (d->log)
        fprintf(d->log, "%" PRIu64 " %c %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu\n",
                (r->arrival_nsec - d->start_nsec) / NSEC_USEC, service ? 'R' : 'r', r->offset,
                r->length, service ? (service->start_nsec - r->arrival_nsec) / NSEC_USEC : 0,
                service ? (service->finish_nsec - service->start_nsec) / NSEC_USEC : 0, depth);
}

/* Adds a read to the list. Returns 0 or -ENOMEM. Called with the lock held. */
static int pending_add(Pending *p, const DiskRequest *r, fuse_req_t req)
{
    if (p->n == p->allocated) {
        size_t n = p->allocated > 0 ? p->allocated * 2 : 256;
        DiskRequest *requests = reallocarray(p->requests, n, sizeof(*requests));
        if (!requests)
            return -ENOMEM;
        p->requests = requests;
        fuse_req_t *reqs = reallocarray(p->reqs, n, sizeof(fuse_req_t));
        if (!reqs)
            return -ENOMEM;
        p->reqs = reqs;
        p->allocated = n;
    }
    p->requests[p->n] = *r;
    p->reqs[p->n++] = req;
    return 0;
}

/* Answers the reads that the fault `hang` holds back. Called with the lock held. */
static void release_held(Device *d, int error)
{
    for (size_t i = 0; i < d->held.n; i++) {
        const DiskRequest *r = &d->held.requests[i];

        if (error < 0)
            fuse_reply_err(d->held.reqs[i], -error);
        else
            fuse_reply_buf(d->held.reqs[i], d->data + r->offset, r->length);
    }
    d->held.n = 0;
}

/* Answers a read whose time has come, or applies the fault to it. Called with the lock held. */
static void answer(Device *d, const DiskRequest *r, fuse_req_t req)
{
    DeviceFault fault = d->fault;

    if (fault == DEVICE_FAULT_NONE || d->fault_count++ % d->fault_every != 0) {
        fuse_reply_buf(req, d->data + r->offset, r->length);
        return;
    }
    d->n_faults++;
    if (fault == DEVICE_FAULT_HANG && pending_add(&d->held, r, req) == 0)
        return;
    if (fault == DEVICE_FAULT_LATE) {
        pthread_mutex_unlock(&d->lock);
        sleep_until(now_nsec() + DEVICE_LATE_NSEC);
        pthread_mutex_lock(&d->lock);
        fuse_reply_buf(req, d->data + r->offset, r->length);
    } else if (fault == DEVICE_FAULT_SHORT)
        fuse_reply_buf(req, d->data + r->offset, r->length / 2);
    else
        fuse_reply_err(req, EIO);
}

static void *serve(void *userdata)
{
    Device *d = userdata;

    /* This thread must not wait for the processor because of the workload, since a real disk needs
     * no processor. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){1});

    pthread_mutex_lock(&d->lock);
    for (;;) {
        Pending *p = &d->pending;

        while ((p->n == 0 || d->paused) && !d->stopping)
            pthread_cond_wait(&d->arrived, &d->lock);
        if (d->stopping)
            break;

        size_t depth = p->n, i = disk_pick(&d->disk, p->requests, p->n);
        DiskRequest r = p->requests[i];
        fuse_req_t req = p->reqs[i];
        p->n--;
        p->requests[i] = p->requests[p->n];
        p->reqs[i] = p->reqs[p->n];

        DiskService service = disk_serve(&d->disk, &r);
        pthread_mutex_unlock(&d->lock);

        if (atomic_load(&d->delays))
            sleep_until(service.finish_nsec);

        /* Counts the read before the answer, so that the counters include every answered read. */
        pthread_mutex_lock(&d->lock);
        account(d, &r, &service, depth);
        answer(d, &r, req);
    }
    release_held(d, -EIO);
    for (size_t i = 0; i < d->pending.n; i++)
        fuse_reply_err(d->pending.reqs[i], EIO);
    d->pending.n = 0;
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

int device_start(Device *d)
{
    return -pthread_create(&d->thread, NULL, serve, d);
}

void device_stop(Device *d)
{
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_cond_signal(&d->arrived);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
}

void device_read(Device *d, fuse_req_t req, size_t size, uint64_t offset)
{
    DiskRequest r = {.offset = offset, .length = size, .arrival_nsec = now_nsec()};
    int q = 0;

    if (offset >= d->size) {
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    if (r.length > d->size - offset)
        r.length = d->size - offset;

    bool delayed = atomic_load(&d->delays);
    pthread_mutex_lock(&d->lock);
    if (!delayed) {
        account(d, &r, NULL, 1);
        disk_touch(&d->disk, r.offset, r.length);
    } else if (d->stopping)
        q = -EIO;
    else
        q = pending_add(&d->pending, &r, req);
    if (delayed && q >= 0)
        pthread_cond_signal(&d->arrived);
    pthread_mutex_unlock(&d->lock);

    if (!delayed)
        fuse_reply_buf(req, d->data + r.offset, r.length);
    else if (q < 0)
        fuse_reply_err(req, -q);
}

int device_record_writes(Device *d, const char *path)
{
    d->writes = fopen(path, "we");
    return d->writes ? 0 : -errno;
}

/* Called with the lock held. */
static void record_write(Device *d, uint64_t offset, uint64_t size, const char *data)
{
    uint64_t head[] = {offset, size};

    if (!d->writes)
        return;
    fwrite(head, sizeof(head), 1, d->writes);
    if (data)
        fwrite(data, size, 1, d->writes);
}

void device_flush(Device *d)
{
    pthread_mutex_lock(&d->lock);
    record_write(d, UINT64_MAX, UINT64_MAX, NULL);
    pthread_mutex_unlock(&d->lock);
}

int device_write(Device *d, const char *data, size_t size, uint64_t offset)
{
    if (offset > d->size || size > d->size - offset)
        return -ENOSPC;
    memcpy(d->data + offset, data, size);

    pthread_mutex_lock(&d->lock);
    for (uint64_t block = offset / BLOCK; block * BLOCK < offset + size; block++)
        d->written[block / 8] |= (unsigned char)(1 << block % 8);
    disk_touch(&d->disk, offset, size);
    record_write(d, offset, size, data);
    d->n_writes++;
    d->written_bytes += size;
    pthread_mutex_unlock(&d->lock);
    return 0;
}

/* --- earlier contents of the disk ---------------------------------------------------------------
 */

static bool bit(const unsigned char *bits, uint64_t block)
{
    return bits[block / 8] & 1 << block % 8;
}

static size_t bitmap_bytes(const Device *d)
{
    return d->size / BLOCK / 8 + 1;
}

static uint64_t block_bytes(const Device *d, uint64_t block)
{
    return d->size - block * BLOCK < BLOCK ? d->size - block * BLOCK : BLOCK;
}

/* reset(), save() and touch() are called with the lock held and return 0 or a negative errno. */

static int reset(Device *d, const char *name)
{
    const Saved *s = NULL;
    uint64_t n = 0;

    if (name) {
        for (s = d->saved; s && strcmp(s->name, name) != 0;)
            s = s->next;
        if (!s)
            return -ENOENT;
    }
    if (madvise(d->data, d->size, MADV_DONTNEED) < 0)
        return -errno;
    memset(d->written, 0, bitmap_bytes(d));
    if (d->disk.touched)
        memset(d->disk.touched, 0, disk_granules(d->disk.profile, d->size) * sizeof(bool));
    if (!s)
        return 0;
    memcpy(d->written, s->written, bitmap_bytes(d));
    for (uint64_t block = 0; block * BLOCK < d->size; block++)
        if (bit(s->written, block))
            memcpy(d->data + block * BLOCK, s->blocks + BLOCK * n++, block_bytes(d, block));
    return 0;
}

static int save(Device *d, const char *name)
{
    Saved *s = calloc(1, sizeof(*s)), **at;
    uint64_t n = 0;

    if (!s)
        return -ENOMEM;
    for (uint64_t block = 0; block * BLOCK < d->size; block++)
        n += bit(d->written, block);
    s->name = strdup(name);
    s->written = malloc(bitmap_bytes(d));
    s->blocks = malloc(n * BLOCK + 1);
    if (!s->name || !s->written || !s->blocks) {
        saved_free(s);
        return -ENOMEM;
    }
    memcpy(s->written, d->written, bitmap_bytes(d));
    n = 0;
    for (uint64_t block = 0; block * BLOCK < d->size; block++)
        if (bit(d->written, block))
            memcpy(s->blocks + BLOCK * n++, d->data + block * BLOCK, block_bytes(d, block));

    for (at = &d->saved; *at && strcmp((*at)->name, name) != 0;)
        at = &(*at)->next;
    s->next = *at ? (*at)->next : NULL;
    saved_free(*at);
    *at = s;
    return 0;
}

/* Marks granules as read. `range` is "OFFSET LENGTH" in bytes, or NULL for the whole disk. */
static int touch(Device *d, const char *range)
{
    uint64_t offset = 0, length = d->size;
    char rest;

    if (!d->disk.touched)
        return -EINVAL;
    if (range && sscanf(range, "%" SCNu64 " %" SCNu64 "%c", &offset, &length, &rest) != 2)
        return -EINVAL;
    if (offset > d->size || length > d->size - offset)
        return -EINVAL;
    disk_touch(&d->disk, offset, length);
    return 0;
}

static uint64_t count_touched(const Device *d)
{
    uint64_t n = 0;

    for (uint64_t g = 0; d->disk.touched && g < disk_granules(d->disk.profile, d->size); g++)
        n += d->disk.touched[g];
    return n;
}

/* Carries out `fault NAME [EVERY]`; `words` is "NAME [EVERY]". Called with the lock held. */
static int set_fault(Device *d, const char *words)
{
    static const char *const names[] = {"none", "hang", "eio", "late", "short"};
    unsigned every = 1;
    char name[16];

    if (sscanf(words, "%15s %u", name, &every) < 1 || every == 0)
        return -EINVAL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], name) == 0) {
            d->fault = (DeviceFault)i;
            d->fault_every = every;
            d->fault_count = 0;
            if (d->fault != DEVICE_FAULT_HANG)
                release_held(d, 0);
            return 0;
        }
    return -EINVAL;
}

int device_control(Device *d, const char *command)
{
    int r = 0;

    if (strcmp(command, "delays on") == 0 || strcmp(command, "delays off") == 0) {
        atomic_store(&d->delays, command[8] == 'n');
        return 0;
    }

    pthread_mutex_lock(&d->lock);
    if (strncmp(command, "mark ", 5) == 0) {
        if (d->log) {
            fprintf(d->log, "# mark %s %" PRIu64 "\n", command + 5,
                    (now_nsec() - d->start_nsec) / NSEC_USEC);
            fflush(d->log);
        }
    } else if (strcmp(command, "pause") == 0 || strcmp(command, "resume") == 0) {
        d->paused = command[0] == 'p';
        pthread_cond_signal(&d->arrived);
    } else if (strncmp(command, "fault ", 6) == 0)
        r = set_fault(d, command + 6);
    else if (strcmp(command, "reset") == 0)
        r = reset(d, NULL);
    else if (strncmp(command, "reset ", 6) == 0)
        r = reset(d, command + 6);
    else if (strncmp(command, "save ", 5) == 0 && command[5])
        r = save(d, command + 5);
    else if (strcmp(command, "touch") == 0)
        r = touch(d, NULL);
    else if (strncmp(command, "touch ", 6) == 0)
        r = touch(d, command + 6);
    else
        r = -EINVAL;
    pthread_mutex_unlock(&d->lock);
    return r;
}

int device_describe(Device *d, char *buf, size_t size)
{
    const DiskProfile *p = d->disk.profile;

    pthread_mutex_lock(&d->lock);
    if (d->log)
        fflush(d->log);
    if (d->writes)
        fflush(d->writes);
    int n = snprintf(buf, size,
                     "profile=%s\ntags=%u\nrotational=%d\nsize=%" PRIu64 "\ndelays=%s\n"
                     "reads=%" PRIu64 "\nread_bytes=%" PRIu64 "\nbusy_usec=%" PRIu64 "\n"
                     "writes=%" PRIu64 "\nwritten_bytes=%" PRIu64 "\nqueued=%zu\n"
                     "faults=%" PRIu64 "\n"
                     "granules_touched=%" PRIu64 "\n",
                     p->name, p->tags, p->rotational, d->size,
                     atomic_load(&d->delays) ? "on" : "off", d->reads, d->read_bytes,
                     d->busy_nsec / NSEC_USEC, d->n_writes, d->written_bytes, d->pending.n,
                     d->n_faults, count_touched(d));
    pthread_mutex_unlock(&d->lock);
    return n;
}
