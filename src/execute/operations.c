/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/operations.h"

#include "device/profile.h"

#include <string.h>

void operation_list_done(OperationList *l)
{
    free(l->operations);
    free(l->streams);
    *l = (OperationList){0};
}

const char *operation_kind_to_string(OperationKind k)
{
    static const char *const names[_OPERATION_KIND_MAX] = {
            [OPERATION_METADATA] = "metadata",
            [OPERATION_ITEM] = "item",
            [OPERATION_OPEN] = "open",
            [OPERATION_DATA] = "data",
    };

    return (int)k >= 0 && k < _OPERATION_KIND_MAX ? names[k] : NULL;
}

const char *replay_skip_to_string(ReplaySkip s)
{
    static const char *const names[_REPLAY_SKIP_MAX] = {
            [REPLAY_SKIP_UNMOUNTED] = "unmounted", [REPLAY_SKIP_DEVICE] = "device",
            [REPLAY_SKIP_GONE] = "gone",           [REPLAY_SKIP_TYPE] = "type",
            [REPLAY_SKIP_REPLACED] = "replaced",   [REPLAY_SKIP_DENIED] = "denied",
            [REPLAY_SKIP_ERROR] = "error",         [REPLAY_SKIP_STOPPED] = "stopped",
    };

    return (int)s >= 0 && s < _REPLAY_SKIP_MAX ? names[s] : NULL;
}

ReplayOrder replay_order_of(const Pack *p, Policy policy)
{
    bool binned = p->header->bin_msec != 0 && policy == POLICY_GATE;

    return policy == POLICY_CONCURRENT || binned ? REPLAY_ORDER_NEED : REPLAY_ORDER_PHYSICAL;
}

void operation_range(const Pack *p, const Operation *o, uint64_t *ret_offset, uint64_t *ret_length)
{
    *ret_offset = *ret_length = 0;
    if (operation_is_metadata(o)) {
        *ret_offset = le64toh(p->metadata[o->index].offset);
        *ret_length = le64toh(p->metadata[o->index].length);
    } else if (o->kind == OPERATION_DATA) {
        *ret_offset = le64toh(p->data[o->index].offset);
        *ret_length = le64toh(p->data[o->index].length);
    }
}

static bool is_joinable(const Pack *p, const Operation *o)
{
    const PackData *d;

    if (o->kind != OPERATION_DATA)
        return false;
    d = &p->data[o->index];
    return le64toh(d->physical) != PACK_PHYSICAL_UNKNOWN &&
           !(le16toh(p->files[le32toh(d->file)].flags) & PACK_FILE_VOLATILE);
}

uint64_t operation_gap(const PackData *before, const PackData *d)
{
    uint64_t end = le64toh(before->physical) + le64toh(before->length), physical, offset;

    if (le64toh(d->physical) < end)
        return UINT64_MAX;
    physical = le64toh(d->physical) - end;
    if (physical == 0)
        return 0;
    offset = le64toh(d->offset) - (le64toh(before->offset) + le64toh(before->length));
    return before->file == d->file && offset == physical ? physical : UINT64_MAX;
}

size_t operations_run(const Pack *p, const Operation *operations, size_t n, uint64_t max_bytes,
                      uint64_t max_gap)
{
    uint64_t bytes = 0;
    size_t i;

    for (i = 0; i < MIN(n, (size_t)OPERATION_RUN_MAX) && is_joinable(p, &operations[i]); i++) {
        const PackData *d = &p->data[operations[i].index];
        uint64_t gap = i > 0 ? operation_gap(&p->data[operations[i - 1].index], d) : 0;

        if (operations[i].volume != operations[0].volume || gap > max_gap)
            break;
        if (i > 0 && (gap > max_bytes - bytes || le64toh(d->length) > max_bytes - bytes - gap))
            break;
        bytes += MIN(gap + le64toh(d->length), max_bytes - bytes);
    }
    return MAX(i, (size_t)1);
}

bool operation_is_unneeded(const PackFile *f, uint64_t resident, uint64_t planned, uint64_t length)
{
    return !(le16toh(f->flags) & PACK_FILE_TOUCHED) && resident > 0 && resident >= planned / 2 &&
           length <= OPERATION_UNNEEDED_MAX;
}

uint64_t operation_appended_max(const PackVolume *v)
{
    bool seeks =
            v->device_class == DEVICE_CLASS_HDD || (le32toh(v->flags) & PACK_VOLUME_SEEKS_SLOWLY);

    return seeks ? OPERATION_APPENDED_SEEKS_MAX : OPERATION_APPENDED_MAX;
}

uint64_t operation_appended_bytes(uint64_t end, uint64_t data_end, uint64_t most)
{
    if (data_end <= end)
        return 0;
    data_end = MIN(data_end, end + most);
    return ALIGN_UP(data_end - end, (uint64_t)PACK_PAGE_SIZE);
}

/* --- order ------------------------------------------------------------------------------------ */

/* Returns true if the pack contains the blocks that the kernel reads when it opens the volume's
 * files. */
static bool replays_metadata(const PackVolume *s, const VolumeFacts *f)
{
    return f->device && le32toh(s->n_metadata) > 0 &&
           !(le32toh(s->flags) & PACK_VOLUME_TOUCH_ENTRIES);
}

/* Returns the place of an operation's kind in the order. Where opening a file reads nothing, data
 * comes first and opens its file. A separate pass over all files would leave a fast device idle for
 * up to a quarter of the sweep. */
static unsigned phase_of(const Pack *p, const VolumeFacts *facts, const Operation *o)
{
    switch (o->kind) {
    case OPERATION_METADATA:
        return 0;
    case OPERATION_ITEM:
        return p->metadata[o->index].reader == METADATA_XFS_DIRECTORY ? 2 : 1;
    case OPERATION_OPEN:
        return replays_metadata(&p->volumes[o->volume], &facts[o->volume]) ? 5 : 3;
    default:
        return 4;
    }
}

typedef struct Keyed {
    unsigned phase; /* the operation with the smallest value comes first, then by urgency … */
    uint32_t urgency;
    uint32_t group; /* operations whose places can be compared: 0, or one for each mapped volume */
    uint64_t place;
    Operation operation;
} Keyed;

/* Returns the number of the bin of first use or, in a pack without bins, the time of first use.
 * Data whose first use is unknown comes last. */
static uint32_t need_bin(const Pack *p, le32_t need_msec)
{
    uint32_t width = le32toh(p->header->bin_msec), need = le32toh(need_msec);

    return need == PACK_NEED_UNKNOWN || width == 0 ? need : need / width;
}

uint64_t operation_place(const Pack *p, const VolumeFacts *facts, const Operation *o)
{
    uint64_t place;

    if (o->kind == OPERATION_OPEN)
        return PACK_PHYSICAL_UNKNOWN;
    place = operation_is_metadata(o) ? le64toh(p->metadata[o->index].offset)
                                     : le64toh(p->data[o->index].physical);
    if (__builtin_add_overflow(place, facts[o->volume].disk_offset, &place))
        return PACK_PHYSICAL_UNKNOWN; /* sorts last */
    return place;
}

bool operations_sweep(const Pack *p, const VolumeFacts *facts, const Operation *operations,
                      size_t n)
{
    uint64_t last = 0;

    for (size_t i = 0; i < OPERATION_SWEEP_MIN; i++) {
        uint64_t place = i < n ? operation_place(p, facts, &operations[i]) : PACK_PHYSICAL_UNKNOWN;

        if (place == PACK_PHYSICAL_UNKNOWN || place < last)
            return false;
        last = place;
    }
    return true;
}

/* Returns true if a sweep in physical order reads the data after those at the end of the device:
 * they lie before the begin of the sweep, or their place is not known. */
static bool is_before_sweep(const Pack *p, const Operation *o)
{
    uint64_t physical = le64toh(p->data[o->index].physical);

    return physical == PACK_PHYSICAL_UNKNOWN ||
           physical < pack_sweep_start(p, &p->volumes[o->volume]);
}

static Keyed keyed(const Pack *p, const VolumeFacts *facts, ReplayOrder order, const Operation *o)
{
    Keyed k = {.phase = phase_of(p, facts, o),
               .group = facts[o->volume].mapped ? o->volume + 1 : 0,
               .place = operation_place(p, facts, o),
               .operation = *o};

    if (o->kind == OPERATION_OPEN)
        k.place = le64toh(p->files[o->index].inode);
    else if (o->kind == OPERATION_DATA && order == REPLAY_ORDER_PHYSICAL)
        k.urgency = is_before_sweep(p, o);
    else if (o->kind == OPERATION_DATA && order == REPLAY_ORDER_NEED)
        k.urgency = need_bin(p, p->data[o->index].need_msec);
    else if (o->kind == OPERATION_DATA && order == REPLAY_ORDER_LIKELY)
        k.urgency = PACK_PROBABILITY_ONE - le16toh(p->data[o->index].probability);
    return k;
}

static int compare(const void *a, const void *b)
{
    const Keyed *x = a, *y = b;
    const Operation *o = &x->operation, *q = &y->operation;

    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    /* Inode numbers of different filesystems cannot be compared. */
    if (o->kind == OPERATION_OPEN && o->volume != q->volume)
        return o->volume < q->volume ? -1 : 1;
    if (x->urgency != y->urgency)
        return x->urgency < y->urgency ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (o->volume != q->volume)
        return o->volume < q->volume ? -1 : 1;
    return o->index < q->index ? -1 : o->index > q->index;
}

int operations_sort(const Pack *p, const VolumeFacts *facts, ReplayOrder order,
                    Operation *operations, size_t n)
{
    _cleanup_free_ Keyed *keys = NULL;
    bool sorted = true;

    if (n < 2)
        return 0;
    keys = reallocarray(NULL, n, sizeof(Keyed));
    if (!keys)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        keys[i] = keyed(p, facts, order, &operations[i]);
        sorted = sorted && (i == 0 || compare(&keys[i - 1], &keys[i]) <= 0);
    }
    if (sorted) /* a sweep of one filesystem: the pack's order is already right */
        return 0;
    qsort(keys, n, sizeof(Keyed), compare);
    for (size_t i = 0; i < n; i++)
        operations[i] = keys[i].operation;
    return 0;
}

/* --- the list --------------------------------------------------------------------------------- */

static bool needs_opens(const PackVolume *s, Policy policy)
{
    return policy != POLICY_METADATA || (le32toh(s->flags) & PACK_VOLUME_TOUCH_ENTRIES) ||
           le32toh(s->n_metadata) == 0;
}

/* Appends the operations of a volume, and counts those that cannot be executed. */
static void add_volume(const Pack *p, const VolumeFacts *facts, uint32_t volume, Policy policy,
                       OperationList *l)
{
    const PackVolume *s = &p->volumes[volume];
    const VolumeFacts *f = &facts[volume];
    uint32_t n;

    if (f->done)
        return;
    for (uint32_t i = 0; i < le32toh(s->n_metadata); i++) {
        uint32_t index = le32toh(s->first_metadata) + i;
        bool item = p->metadata[index].reader != METADATA_OF_DEVICE;

        if (!f->mounted)
            l->n_skipped[REPLAY_SKIP_UNMOUNTED]++;
        else if (item ? f->items : f->device)
            l->operations[l->n++] =
                    (Operation){item ? OPERATION_ITEM : OPERATION_METADATA, volume, index};
        else if (!item) /* without items, opening the files reads the same blocks */
            l->n_skipped[REPLAY_SKIP_DEVICE]++;
    }
    if (!needs_opens(s, policy))
        return;
    n = le32toh(s->n_files);
    if (!f->mounted) {
        l->n_skipped[REPLAY_SKIP_UNMOUNTED] += n;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        l->operations[l->n++] = (Operation){OPERATION_OPEN, volume, le32toh(s->first_file) + i};
    if (policy == POLICY_METADATA)
        return;
    n = le32toh(s->n_data);
    for (uint32_t i = 0; i < n; i++)
        l->operations[l->n++] = (Operation){OPERATION_DATA, volume, le32toh(s->first_data) + i};
}

/* The maximum number of workers where every open finds its metadata in the page cache: one worker
 * requests data without being blocked, and the other opens files meanwhile. More workers only take
 * processor time from the stage that is being replayed. */
#define WORKERS_CACHED 2U

static unsigned workers_of_volume(const PackVolume *s, const VolumeFacts *f, DeviceClass class)
{
    unsigned n = device_engine_of_class(class)->n_workers;

    return replays_metadata(s, f) ? MIN(n, WORKERS_CACHED) : n;
}

/* Sets the further workers of a stream whose operations are sorted. */
static void set_openers(const Pack *p, const VolumeFacts *facts, const Operation *operations,
                        Stream *s)
{
    for (size_t i = s->first; i < s->first + s->n && s->n_workers == 1; i++)
        if (operations[i].kind == OPERATION_ITEM ||
            (operations[i].kind == OPERATION_OPEN &&
             !replays_metadata(&p->volumes[operations[i].volume], &facts[operations[i].volume])))
            s->n_openers = OPERATION_OPENERS;
}

/* Returns the class for a disk that holds several filesystems: the one of their classes with fewer
 * workers. */
static DeviceClass more_careful(DeviceClass a, DeviceClass b)
{
    return device_engine_of_class(a)->n_workers <= device_engine_of_class(b)->n_workers ? a : b;
}

#define NO_FILE UINT32_MAX

/* Returns the index of the file with that path below the root, or NO_FILE. */
static uint32_t find_file(const Pack *p, const char *path)
{
    for (uint32_t v = 0; v < le32toh(p->header->n_volumes); v++) {
        const PackVolume *s = &p->volumes[v];
        const char *mountpoint = pack_string(p, s->mountpoint);
        uint32_t first = le32toh(s->first_file);
        size_t l = strlen(mountpoint);

        while (l > 0 && mountpoint[l - 1] == '/')
            l--;
        if (strncmp(path, mountpoint, l) != 0 || path[l] != '/')
            continue;
        for (uint32_t i = first; i < first + le32toh(s->n_files); i++)
            if (strcmp(path + l + 1, pack_string(p, p->files[i].path)) == 0)
                return i;
    }
    return NO_FILE;
}

static bool reads_from(const Pack *p, const Operation *o, uint32_t file)
{
    return o->kind == OPERATION_DATA && le32toh(p->data[o->index].file) == file;
}

/* Moves the data of the file before the other operations of the stream. */
static void move_first(const Stream *s, Operation *operations, const Pack *p, uint32_t file)
{
    Operation *first = operations + s->first;

    for (Operation *o = first; o < operations + s->first + s->n; o++)
        if (reads_from(p, o, file)) {
            const Operation moved = *o;

            memmove(first + 1, first, (size_t)(o - first) * sizeof(*o));
            *first++ = moved;
        }
}

void operations_beside_application(OperationList *l, const Pack *p, const char *executable)
{
    uint32_t file = find_file(p, executable);

    for (size_t i = 0; i < l->n_streams; i++)
        if (l->streams[i].n_workers == 1) {
            l->streams[i].n_workers = OPERATION_WORKERS_BESIDE;
            l->streams[i].n_openers = 0;
            l->streams[i].beside = true;
            move_first(&l->streams[i], l->operations, p, file);
        }
}

/* Returns the bin of the data of an operation. A pack without bins has one. */
static uint32_t bin_of(const Pack *p, const Operation *o)
{
    return le32toh(p->header->bin_msec) == 0 ? 0 : need_bin(p, p->data[o->index].need_msec);
}

size_t operations_of_file(const Pack *p, const Operation *operations, size_t n, const char *path)
{
    uint32_t file = find_file(p, path);
    size_t i = 0;

    while (i < n && reads_from(p, &operations[i], file))
        i++;
    return i;
}

size_t operations_of_bin(const Pack *p, const Operation *operations, size_t n)
{
    size_t i = 0;

    while (i < n && operations[i].kind == OPERATION_DATA &&
           bin_of(p, &operations[i]) == bin_of(p, &operations[0]))
        i++;
    return i;
}

/* By this factor the window next to a stage is larger on a disk whose first reads are slow. Such a
 * disk loads many parts at once, but two large requests would fill the ordinary window. */
#define SLOW_FIRST_WIDENS 2U

static void set_window(Stream *s, bool slow_first_reads)
{
    const DeviceEngine *engine = device_engine_of_class(s->device_class);
    unsigned factor = slow_first_reads ? SLOW_FIRST_WIDENS : 1;

    s->window_bytes = engine->window_bytes;
    s->window_requests = engine->window_requests;
    s->beside_bytes = engine->beside_bytes * factor;
    s->beside_requests = engine->beside_requests * factor;
}

int operations_from_pack(const Pack *p, const VolumeFacts *facts, Policy policy, OperationList *ret)
{
    const PackHeader *h = p->header;
    uint32_t n_volumes = le32toh(h->n_volumes);
    _cleanup_operation_list_ OperationList l = {0};
    int r;

    if (policy == POLICY_OFF) {
        *ret = l;
        return 0;
    }
    /* pack_open() has checked the counts against the size of the file, so the allocation is
     * bounded. */
    l.operations =
            calloc((size_t)le32toh(h->n_metadata) + le32toh(h->n_files) + le32toh(h->n_data) + 1,
                   sizeof(Operation));
    l.streams = calloc((size_t)n_volumes + 1, sizeof(Stream));
    if (!l.operations || !l.streams)
        return -ENOMEM;

    for (uint32_t i = 0; i < n_volumes; i++) {
        DeviceClass class = (DeviceClass)p->volumes[i].device_class;
        Stream *s = NULL;

        for (size_t k = 0; k < l.n_streams && facts[i].mounted; k++)
            if (l.streams[k].disk == facts[i].disk)
                s = &l.streams[k];
        if (s)
            s->device_class = more_careful(s->device_class, class);
        else if (facts[i].mounted)
            l.streams[l.n_streams++] = (Stream){.disk = facts[i].disk, .device_class = class};
        else
            add_volume(p, facts, i, policy, &l); /* only counts its operations as skipped */
    }
    for (size_t k = 0; k < l.n_streams; k++) {
        Stream *s = &l.streams[k];
        bool slow_first_reads = false;

        s->first = l.n;
        for (uint32_t i = 0; i < n_volumes; i++)
            if (facts[i].mounted && facts[i].disk == s->disk) {
                add_volume(p, facts, i, policy, &l);
                s->n_workers = MAX(s->n_workers,
                                   workers_of_volume(&p->volumes[i], &facts[i], s->device_class));
                slow_first_reads = slow_first_reads ||
                                   (le32toh(p->volumes[i].flags) & PACK_VOLUME_SLOW_FIRST_READS);
            }
        s->n = l.n - s->first;
        set_window(s, slow_first_reads);
        r = operations_sort(p, facts, replay_order_of(p, policy), l.operations + s->first, s->n);
        if (r < 0)
            return r;
        set_openers(p, facts, l.operations, s);
    }
    *ret = l;
    l = (OperationList){0};
    return 0;
}
