/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The items and opens of the executor, the descriptors of files, and the end of the requests that
 * use them. The lock map of executor-internal.h holds here, too. */

#include "execute/executor-internal.h"

#include "base/directory.h"
#include "system/item-read.h"

#include <unistd.h>

/* Takes the descriptor out of the file and returns it; the caller closes it. Returns -EBADF if the
 * file has none, if a chunk is in flight, or if the file has data left to read and no more than
 * keep_open files are open. Called with the lock held. */
static int drop_descriptor(Replay *x, File *f)
{
    int fd = f->fd;

    if (fd < 0 || f->in_flight > 0 || (f->left > 0 && x->n_open <= x->keep_open))
        return -EBADF;
    f->fd = -EBADF;
    x->n_open--;
    return fd;
}

static int open_file(Worker *w, uint32_t volume, const PackFile *f, bool reading, ReplaySkip *why)
{
    const Replay *x = w->replay;
    int fd;

    for (;;) {
        fd = open_planned(x->mounted.volumes[volume].root_fd, pack_string(x->pack, f->path), f,
                          reading, why);
        if ((fd != -EMFILE && fd != -ENFILE) || w->pacer.in_flight_requests == 0)
            return fd;
        await_oldest(w);
    }
}

/* Counts the result of the first attempt to open the file. Called with the lock held. */
static void note_opened(Replay *x, File *file, bool found, ReplaySkip why)
{
    if (file->state != FILE_UNTRIED)
        return;
    file->state = found ? FILE_FOUND : FILE_SKIPPED;
    if (found)
        x->result.n_opened++;
    else
        x->result.n_skipped[why]++;
}

/* Notes that an item or an open is no longer under way. Called with the lock held. */
static void note_done(Worker *w)
{
    if (--w->stream_queue->busy_opens == 0)
        pthread_cond_broadcast(&w->replay->opened);
}

void execute_item(Worker *w, const Operation *op)
{
    Replay *x = w->replay;
    const PackMetadata *m = &x->pack->metadata[op->index];
    const MetadataItem item = pack_item(m);
    int r;

    /* btrfs keeps the node above the leaf locked while it reads the leaf. A writer would wait for a
     * read at idle priority. */
    if (w->io_class == IO_CLASS_IDLE)
        thread_set_io_class(IO_CLASS_BEST_EFFORT);
    r = metadata_item_read(x->mounted.volumes[op->volume].root_fd, &item);
    if (w->io_class == IO_CLASS_IDLE)
        thread_set_io_class(IO_CLASS_IDLE);
    lock(x);
    if (r < 0)
        x->result.n_skipped[r == -ENOENT  ? REPLAY_SKIP_GONE
                            : r == -EPERM ? REPLAY_SKIP_DENIED
                                          : REPLAY_SKIP_ERROR]++;
    else {
        x->result.n_metadata++;
        x->result.metadata_bytes += le64toh(m->length);
        x->result.item_bytes += le64toh(m->length);
    }
    note_done(w);
    unlock(x);
}

void execute_open(Worker *w, const Operation *op)
{
    Replay *x = w->replay;
    const PackFile *f = &x->pack->files[op->index];
    bool touch = pack_file_is_listed(f) &&
                 (le32toh(x->pack->volumes[op->volume].flags) & PACK_VOLUME_TOUCH_ENTRIES);
    File *file = &x->files[op->index];
    ReplaySkip why = REPLAY_SKIP_ERROR;
    bool keep, tried, opened;
    int fd = -EBADF;

    lock(x);
    tried = file->reading || file->state != FILE_UNTRIED;
    keep = !tried && file->left > 0 && x->n_open < x->keep_open;
    if (keep)
        x->n_open++;
    unlock(x);
    if (!tried)
        fd = open_file(w, op->volume, f, keep || touch, &why);
    opened = fd >= 0;
    if (opened && touch) {
        directory_read_ahead(fd, 0, NULL, NULL);
        close(TAKE_FD(fd));
    }
    lock(x);
    if (!tried)
        note_opened(x, file, opened, why);
    if (keep && fd >= 0 && file->fd < 0)
        file->fd = TAKE_FD(fd);
    else if (keep)
        x->n_open--;
    note_done(w);
    unlock(x);
    if (keep && fd >= 0)
        close(fd); /* another worker has opened the file meanwhile */
}

int acquire_file(Worker *w, const Operation *op, uint32_t index)
{
    Replay *x = w->replay;
    File *f = &x->files[index];
    ReplaySkip why = REPLAY_SKIP_ERROR;
    int fd, mine = -EBADF;

    lock(x);
    if (f->state == FILE_SKIPPED) {
        unlock(x);
        return -ENOENT; /* the error was counted when opening the file failed */
    }
    if (f->fd < 0) {
        unlock(x);
        mine = open_file(w, op->volume, &x->pack->files[index], true, &why);
        lock(x);
        if (mine < 0) {
            if (f->state == FILE_FOUND)
                x->result.n_skipped[why]++; /* it was found before, and is not any more */
            note_opened(x, f, false, why);
            unlock(x);
            return mine;
        }
        note_opened(x, f, true, why);
        if (f->fd < 0) {
            f->fd = mine;
            x->n_open++;
            mine = -EBADF;
        }
    }
    f->in_flight++;
    fd = f->fd;
    unlock(x);
    if (mine >= 0)
        close(mine); /* another worker has opened the file meanwhile */
    return fd;
}

void release_file(Replay *x, uint32_t index)
{
    int fd;

    lock(x);
    x->files[index].in_flight--;
    fd = drop_descriptor(x, &x->files[index]);
    unlock(x);
    if (fd >= 0)
        close(fd);
}

void await_oldest(Worker *w)
{
    const Chunk *c = &w->queue[w->oldest];
    const Replay *x = w->replay;
    uint64_t end = c->offset + c->length, at = c->offset;

    /* A volatile file may have grown since the plan. */
    if (c->file != CHUNK_OF_DEVICE &&
        !(le16toh(x->pack->files[c->file].flags) & PACK_FILE_VOLATILE))
        end = MIN(end, le64toh(x->pack->files[c->file].size));
    /* The last page, because a file ends before the last byte of the chunk if its size is no
     * multiple of the page size. */
    if (!x->options.wait && !pacer_is_restarting(&w->pacer) && end > at)
        at = MAX(at, ALIGN_DOWN(end - 1, (uint64_t)PACK_PAGE_SIZE));
    while (at < end) {
        ssize_t n = pread(c->fd, w->scratch, MIN(end - at, (uint64_t)SCRATCH_BYTES), (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            w->failed = true;
        if (n <= 0)
            break;
        at += (uint64_t)n;
    }
    pacer_completed(&w->pacer, c->bytes);
    w->oldest = (w->oldest + 1) % w->queue_size;
    if (c->file != CHUNK_OF_DEVICE)
        release_file(w->replay, c->file);
}
