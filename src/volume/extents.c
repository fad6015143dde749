/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/extents.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#define EXTENTS_PER_CALL 256U

/* Flags of extents without a physical offset at which their data could be read. */
#define PLACELESS                                                               \
    (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNWRITTEN | \
     FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL | FIEMAP_EXTENT_NOT_ALIGNED)

void extent_list_done(ExtentList *l)
{
    free(l->extents);
    *l = (ExtentList){0};
}

static int read_all(int fd, size_t max, uint32_t placeless, ExtentList *ret)
{
    union {
        struct fiemap map;
        char room[sizeof(struct fiemap) + EXTENTS_PER_CALL * sizeof(struct fiemap_extent)];
    } request;
    uint64_t start = 0;

    for (;;) {
        bool last = false;
        int r;

        request.map = (struct fiemap){
                .fm_start = start,
                .fm_length = FIEMAP_MAX_OFFSET - start,
                .fm_extent_count = EXTENTS_PER_CALL,
        };
        if (ioctl(fd, FS_IOC_FIEMAP, &request.map) < 0)
            return errno == ENOTTY ? -EOPNOTSUPP : -errno;
        if (request.map.fm_mapped_extents == 0)
            return 0;

        for (uint32_t i = 0; i < request.map.fm_mapped_extents && i < EXTENTS_PER_CALL; i++) {
            const struct fiemap_extent *e = &request.map.fm_extents[i];

            last = e->fe_flags & FIEMAP_EXTENT_LAST;
            /* An extent that does not advance is refused, because the loop would never end. */
            if (e->fe_length == 0 || e->fe_length > FIEMAP_MAX_OFFSET - e->fe_logical ||
                e->fe_logical + e->fe_length <= start)
                return -EBADMSG;
            start = e->fe_logical + e->fe_length;
            if (e->fe_flags & placeless) {
                ret->n_skipped++;
                ret->n_delayed +=
                        (e->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC)) != 0;
                continue;
            }
            if (ret->n >= max)
                return -E2BIG;
            r = grow_array(&ret->extents, &ret->allocated, ret->n + 1, sizeof(Extent));
            if (r < 0)
                return r;
            ret->extents[ret->n] = (Extent){
                    .logical = e->fe_logical,
                    .physical = e->fe_physical,
                    .length = e->fe_length,
            };
            ret->extents[ret->n].run = extent_run(ret->extents, ret->n);
            ret->n++;
        }
        if (last || start >= FIEMAP_MAX_OFFSET)
            return 0;
    }
}

static int read_list(int fd, size_t max, uint32_t placeless, ExtentList *ret)
{
    int r;

    ret->n = ret->n_skipped = ret->n_delayed = 0;
    r = read_all(fd, max, placeless, ret);
    if (r < 0)
        ret->n = ret->n_skipped = ret->n_delayed = 0;
    return r;
}

int extents_read(int fd, size_t max, ExtentList *ret)
{
    return read_list(fd, max, PLACELESS, ret);
}

int extents_read_allocated(int fd, size_t max, ExtentList *ret)
{
    return read_list(fd, max, PLACELESS & ~(uint32_t)FIEMAP_EXTENT_UNWRITTEN, ret);
}
