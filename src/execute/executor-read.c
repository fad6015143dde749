/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The data and metadata ranges of the executor: requests ranges and runs of ranges. The lock map of
 * executor-internal.h holds here, too. */

#include "execute/executor-internal.h"

#include "execute/joined-read.h"
#include "system/cachestat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_room(Worker *w, uint64_t bytes)
{
    while (!pacer_may_submit(&w->pacer, bytes))
        await_oldest(w);
}

/* Puts a chunk that was requested into the ring; make_room() comes before the request. */
static void note_submitted(Worker *w, const Chunk *c)
{
    w->queue[(w->oldest + w->pacer.in_flight_requests) % w->queue_size] = *c;
    pacer_submitted(&w->pacer, c->bytes);
    w->thread_bytes += c->bytes;
}

/* Submits one chunk. On success await_oldest() releases its file later; on failure the caller does.
 * readahead(2) would do, too, but it refused block devices in Linux 4.19 to 6.6. */
static int submit(Worker *w, const Chunk *c)
{
    int r;

    make_room(w, c->bytes);
    r = -posix_fadvise(c->fd, (off_t)c->offset, c->length, POSIX_FADV_WILLNEED);
    if (r < 0)
        return r;
    note_submitted(w, c);
    return 0;
}

/* Returns the end of the data that follows the planned end of a file. Skips short holes, because a
 * journal leaves out single blocks. The search ends shortly after `limit`. */
static uint64_t find_data_end(int fd, uint64_t end, uint64_t limit)
{
    /* lseek(2) changes the file offset. That has no effect, because reads use pread(2). */
    off_t hole = lseek(fd, (off_t)end - 1, SEEK_HOLE);

    while (hole > 0 && (uint64_t)hole >= end && (uint64_t)hole < limit) {
        off_t data = lseek(fd, hole, SEEK_DATA);

        if (data < 0 || (uint64_t)(data - hole) > OPERATION_HOLE_MAX)
            break;
        hole = lseek(fd, data, SEEK_HOLE);
    }
    return hole > 0 ? (uint64_t)hole : 0;
}

/* Returns true if a program may have appended data to the planned range, which ends at `end`. In a
 * new version of a file, data after `end` count as appended only if the old version ended there. */
static bool may_be_appended(const PackFile *f, const struct stat *st, uint64_t end)
{
    return opening_was_written(f, st) &&
           (st->st_ino == le64toh(f->inode) || end >= le64toh(f->size));
}

/* Returns how many bytes after the file's range that ends at `end` are read as well. Only the last
 * range of a volatile file has such bytes, and only if the file was written to after the plan: of a
 * journal that is archived by now, no program reads more than before. */
static uint64_t appended_bytes(Worker *w, const Operation *op, uint32_t index, uint64_t end)
{
    Replay *x = w->replay;
    const PackFile *f = &x->pack->files[index];
    uint64_t data_end = 0, bytes,
             most = x->leg == LEG_NONE ? operation_appended_max(&x->pack->volumes[op->volume])
                                       : OPERATION_APPENDED_MAX;
    struct stat st;
    int fd;

    if (!(le16toh(f->flags) & PACK_FILE_VOLATILE) || end == 0 || end != x->files[index].end)
        return 0;
    fd = acquire_file(w, op, index);
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) >= 0 && may_be_appended(f, &st, end))
        data_end = find_data_end(fd, end, end + most);
    release_file(x, index);
    bytes = operation_appended_bytes(end, data_end, most);
    if (x->recheck_until) /* it was counted in the sweep */
        return bytes;
    lock(x);
    bytes = MIN(bytes, OPERATION_APPENDED_ALL_MAX - x->appended_bytes);
    x->appended_bytes += bytes;
    unlock(x);
    return bytes;
}

/* Restarts the window if the operation begins a new sweep of a disk that has one ordered stream. */
static void follow_head(Worker *w, const Operation *op)
{
    const Replay *x = w->replay;
    uint64_t place = operation_place(x->pack, x->mounted.facts, op);

    if (w->alone && place != PACK_PHYSICAL_UNKNOWN && x->leg != LEG_EXECUTABLE)
        pacer_follow(&w->pacer, place, w->sweeps);
}

/* Finds out before the first range of the file is read how much of the file is resident. */
static void examine_file(Worker *w, const Operation *op, uint32_t index)
{
    Replay *x = w->replay;
    File *f = &x->files[index];
    int64_t pages;
    bool examined;
    int fd;

    lock(x);
    examined = f->examined;
    f->examined = true;
    unlock(x);
    fd = examined ? -EBADF : acquire_file(w, op, index);
    if (fd < 0)
        return;
    pages = cachestat_count(fd, CACHESTAT_RESIDENT, 0, f->end);
    release_file(x, index);
    lock(x);
    f->resident = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    unlock(x);
}

/* Returns true if the application probably does not need the range. */
static bool is_unneeded(Replay *x, uint32_t index, uint64_t length)
{
    const File *f = &x->files[index];
    bool unneeded;

    lock(x);
    unneeded = operation_is_unneeded(&x->pack->files[index], f->resident, f->bytes, length);
    unlock(x);
    return unneeded;
}

/* Returns true if `skip_resident` leaves out the chunk of a range of `length` bytes. */
static bool leaves_out(Replay *x, const Chunk *c, uint64_t length)
{
    return x->options.skip_resident &&
           (cachestat_is_resident(c->fd, c->offset, c->length) > 0 ||
            (c->file != CHUNK_OF_DEVICE && is_unneeded(x, c->file, length)));
}

/* Counts a range that is left out as begun. `found`: its file could be opened. */
static void note_left_out(Replay *x, uint32_t file, bool found, uint64_t length)
{
    lock(x);
    x->files[file].left--;
    x->result.n_data += found;
    x->result.resident_bytes += found ? length : 0;
    unlock(x);
}

/* Returns how many resident pages the range of the file has. */
static uint64_t count_resident(int fd, uint64_t offset, uint64_t length)
{
    int64_t n = cachestat_count(fd, CACHESTAT_RESIDENT, offset, length);

    return n > 0 ? (uint64_t)n : 0;
}

void survey_range(Worker *w, const Operation *op)
{
    Replay *x = w->replay;
    uint32_t index = le32toh(x->pack->data[op->index].file);
    uint64_t offset, length;
    Need need = NEED_NONE;
    int fd;

    operation_range(x->pack, op, &offset, &length);
    examine_file(w, op, index);
    fd = acquire_file(w, op, index);
    if (fd >= 0) {
        if (le16toh(x->pack->files[index].flags) & PACK_FILE_VOLATILE)
            need = NEED_PARTS;
        else if (cachestat_is_resident(fd, offset, length) <= 0 && !is_unneeded(x, index, length))
            need = count_resident(fd, offset, length) > 0 ? NEED_PARTS : NEED_WHOLE;
    }
    x->needs[op->index] = need;
    if (need == NEED_NONE)
        note_left_out(x, index, fd >= 0, length);
    if (fd >= 0)
        release_file(x, index);
}

/* Returns the largest size of the next chunk of a range. Next to an application, a larger chunk of
 * metadata of which parts are in memory would become several requests at once, which a disk reads
 * downwards. */
static uint64_t largest_chunk(const Worker *w, const MountedVolume *m)
{
    if (w->replay->leg == LEG_METADATA)
        return (uint64_t)sysconf(_SC_PAGESIZE);
    return pacer_begins_sweep(&w->pacer) ? MIN(m->chunk_bytes, PACER_FIRST_BYTES) : m->chunk_bytes;
}

void execute_range(Worker *w, const Operation *op)
{
    Replay *x = w->replay;
    const MountedVolume *m = &x->mounted.volumes[op->volume];
    bool metadata = op->kind == OPERATION_METADATA;
    uint32_t index = metadata ? CHUNK_OF_DEVICE : le32toh(x->pack->data[op->index].file);
    uint64_t offset, length, at, resident = 0;
    int r = 0;

    follow_head(w, op);
    operation_range(x->pack, op, &offset, &length);
    if (!metadata)
        length += appended_bytes(w, op, index, offset + length);
    if (!metadata && x->options.skip_resident)
        examine_file(w, op, index);
    if (!metadata && !x->recheck_until) {
        lock(x);
        x->files[index].left--;
        unlock(x);
    }
    for (at = 0; at < length && r >= 0;) {
        Chunk c = {
                .fd = m->device_fd,
                .file = index,
                .length = (uint32_t)MIN(length - at, largest_chunk(w, m)),
                .offset = offset + at,
        };

        c.bytes = c.length;
        if (!metadata) {
            c.fd = acquire_file(w, op, index);
            if (c.fd < 0)
                return;
        }
        if (x->recheck_until && cachestat_is_resident(c.fd, c.offset, c.length) != 0)
            r = 1;
        else if (leaves_out(x, &c, length)) {
            r = 1;
            resident += c.length;
        } else
            r = submit(w, &c);
        if (r != 0 && !metadata)
            release_file(x, index);
        if (r >= 0)
            at += c.length;
    }
    if (x->recheck_until)
        return;
    lock(x);
    if (r < 0)
        x->result.n_skipped[REPLAY_SKIP_ERROR]++;
    else if (metadata)
        x->result.n_metadata++;
    else
        x->result.n_data++;
    *(metadata ? &x->result.metadata_bytes : &x->result.data_bytes) += at - resident;
    x->result.resident_bytes += resident;
    unlock(x);
}

/* A part of a run: ranges of one file that one request reads, with the gaps between them. */
typedef struct RunPart {
    const Operation *first;
    size_t n;
    uint32_t file;
} RunPart;

/* Counts the ranges as begun, and as read. */
static void count_run(Replay *x, const RunPart *parts, const JoinedPart *joined, size_t n)
{
    lock(x);
    for (size_t i = 0; i < n; i++) {
        x->files[parts[i].file].left -= (uint32_t)parts[i].n;
        x->result.n_data += parts[i].n;
        x->result.data_bytes += joined[i].length;
    }
    unlock(x);
}

/* Adds the range of an operation of the run to the part, which ends with the previous operation, if
 * a gap lies between the two. Returns false if the range begins a part of its own. */
static bool extend_part(const Pack *p, const Operation *op, RunPart *part, JoinedPart *joined)
{
    const PackData *d = &p->data[op->index];
    uint64_t gap = operation_gap(&p->data[(op - 1)->index], d);

    if (part->first + part->n != op || gap == 0)
        return false;
    joined->length += gap + le64toh(d->length);
    part->n++;
    return true;
}

/* Returns the part whose data arrive last: the last one that is not in memory. */
static size_t last_missing(const JoinedPart *joined, size_t n)
{
    size_t i = n - 1;

    while (i > 0 && cachestat_is_resident(joined[i].fd, joined[i].offset, joined[i].length) > 0)
        i--;
    return i;
}

void execute_run(Worker *w, const Operation *operations, size_t n)
{
    Replay *x = w->replay;
    RunPart parts[OPERATION_RUN_MAX];
    JoinedPart joined[OPERATION_RUN_MAX];
    uint64_t bytes = 0;
    size_t m = 0, kept = 0;
    int r = -ENODATA;

    follow_head(w, &operations[0]);
    for (; n > 1 && pacer_begins_sweep(&w->pacer); n--)
        execute_range(w, operations++); /* a run would be longer than the first request may be */
    for (size_t i = 0; i < n; i++) {
        uint32_t file = le32toh(x->pack->data[operations[i].index].file);
        Chunk c = {.file = file};
        uint64_t length;

        operation_range(x->pack, &operations[i], &c.offset, &length);
        if (x->options.skip_resident)
            examine_file(w, &operations[i], file);
        c.fd = acquire_file(w, &operations[i], file);
        if (c.fd < 0)
            continue;
        c.length = (uint32_t)length;
        if (leaves_out(x, &c, length)) {
            note_left_out(x, file, true, length);
            release_file(x, file);
            continue;
        }
        if (m > 0 && extend_part(x->pack, &operations[i], &parts[m - 1], &joined[m - 1])) {
            release_file(x, file);
            continue;
        }
        parts[m] = (RunPart){&operations[i], 1, file};
        joined[m++] = (JoinedPart){c.fd, c.offset, length};
    }
    for (size_t i = 0; i < m; i++)
        bytes += joined[i].length;
    if (m > 0) {
        make_room(w, bytes);
        kept = last_missing(joined, m);
        r = joined_read(joined, m);
    }
    if (r >= 0) {
        const JoinedPart *last = &joined[kept];

        count_run(x, parts, joined, m);
        note_submitted(w, &(Chunk){last->fd, parts[kept].file, (uint32_t)last->length, last->offset,
                                   bytes});
    }
    for (size_t i = 0; i < m; i++)
        if (r < 0 || i != kept)
            release_file(x, parts[i].file);
    for (size_t i = 0; r < 0 && i < m; i++)
        for (size_t k = 0; k < parts[i].n; k++)
            execute_range(w, parts[i].first + k);
}
