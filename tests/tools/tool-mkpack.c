/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes a pack of given files, for tests of replay, without trace, model, budget or merging.
 *
 *     tool-mkpack [OPTION…] OUTPUT MOUNTPOINT…
 *
 * The pack has one volume per mount point. Each line of standard input names a file or directory:
 * PATH for all of it, or PATH<TAB>OFFSET<TAB>LENGTH for a range of a file, which may have several
 * such lines. Paths begin with a mount point.
 *
 *     --stage=, --policy=, --reason=, --class=, --deadline=USEC, --control=N
 *                         set these fields of the pack
 *     --metadata          adds the metadata that libext2fs finds for the files and directories
 *     --device-size=N     stores this size of the device, for example a wrong one
 *     --volatile          marks all files as written in place
 *     --looked-up         marks all directories as looked up, but not listed
 */

#include "base/clock.h"
#include "base/parse.h"
#include "pack/pack-writer.h"
#include "volume/ext2-metadata.h"
#include "volume/extents.h"
#include "volume/metadata-deriver.h"
#include "volume/placed-ranges.h"
#include "volume/volume.h"

#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Wanted {
    char *path;
    uint64_t offset, length; /* length 0: the whole file */
    uint64_t inode;
} Wanted;

typedef struct Options {
    Stage stage;
    Policy policy;
    PolicyReason reason;
    int device_class; /* < 0: the class of the volume's device */
    uint64_t deadline, control, device_size;
    bool metadata, written_in_place, looked_up;
} Options;

static Wanted *wanted;
static size_t n_wanted, allocated_wanted;

static void read_wanted(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;

    while ((n = getline(&line, &size, stdin)) > 0) {
        Wanted w = {0};
        struct stat st;
        char *tab;

        if (line[n - 1] == '\n')
            line[n - 1] = 0;
        tab = strchr(line, '\t');
        if (tab) {
            *tab = 0;
            if (sscanf(tab + 1, "%" SCNu64 "\t%" SCNu64, &w.offset, &w.length) != 2)
                errx(1, "%s: no range", line);
        }
        if (lstat(line, &st) < 0)
            err(1, "%s", line);
        w.inode = st.st_ino;
        w.path = strdup(line);
        if (!w.path || grow_array(&wanted, &allocated_wanted, n_wanted + 1, sizeof(Wanted)) < 0)
            errx(1, "out of memory");
        wanted[n_wanted++] = w;
    }
    free(line);
}

static int by_inode(const void *a, const void *b)
{
    const Wanted *x = a, *y = b;

    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Adds the range split by its extents, or as a whole with an unknown place if the extents are not
 * known. */
static void add_range(PackContentVolume *s, uint32_t file, int fd, const Wanted *w, uint64_t size)
{
    _cleanup_extent_list_ ExtentList l = {0};
    PlacedRangeList list = {s->data, s->n_data, s->allocated_data};
    uint64_t end = w->length == 0 ? size : MIN(w->offset + w->length, size);
    PlacedRange range = {
            .file = file,
            .offset = w->offset,
            .length = end - MIN(w->offset, end),
            .need = USEC_INFINITY,
            .probability = 1,
    };

    if (range.length == 0)
        return;
    if (extents_read(fd, EXTENTS_PER_FILE_MAX, &l) < 0)
        l.n = 0;
    if (placed_ranges_add(&list, &range, PACK_PAGE_SIZE, l.extents, l.n, PLACED_HOLES_DROP) < 0)
        errx(1, "out of memory");
    s->data = list.ranges;
    s->n_data = list.n;
    s->allocated_data = list.allocated;
}

static void add_files(PackContentVolume *s, const char *mountpoint, const Options *o)
{
    size_t l = strlen(mountpoint);

    for (size_t i = 0; i < n_wanted; i++) {
        const Wanted *w = &wanted[i];
        _cleanup_close_ int fd = -EBADF;
        const char *path = w->path + l;
        struct stat st;

        if (strncmp(w->path, mountpoint, l) != 0 || (*path != '/' && *path != 0))
            continue;
        while (*path == '/')
            path++;
        if (lstat(w->path, &st) < 0)
            err(1, "%s", w->path);
        if (i == 0 || wanted[i - 1].inode != w->inode || s->n_files == 0) {
            if (grow_array(&s->files, &s->allocated_files, s->n_files + 1,
                           sizeof(PackContentFile)) < 0)
                errx(1, "out of memory");
            s->files[s->n_files++] = (PackContentFile){
                    .path = strdup(*path ? path : "."),
                    .directory = S_ISDIR(st.st_mode),
                    .looked_up = S_ISDIR(st.st_mode) && o->looked_up,
                    .written_in_place = o->written_in_place && S_ISREG(st.st_mode),
                    .inode = st.st_ino,
                    .size_bytes = (uint64_t)st.st_size,
                    .mtime_nsec = st.st_mtim.tv_sec * 1000000000L + st.st_mtim.tv_nsec,
                    .ctime_nsec = st.st_ctim.tv_sec * 1000000000L + st.st_ctim.tv_nsec,
                    .need = USEC_INFINITY,
                    .probability = 1,
            };
        }
        if (!S_ISREG(st.st_mode))
            continue;
        fd = open(w->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            err(1, "%s", w->path);
        add_range(s, (uint32_t)s->n_files - 1, fd, w, (uint64_t)st.st_size);
    }
}

static void add_metadata(PackContentVolume *s, const Volume *v)
{
    _cleanup_range_set_ RangeSet ranges = {0};
    Ext2Metadata *m = NULL;
    Volume system = *v;
    int r;

    system.of_system = true; /* the metadata of a loop device is not parsed otherwise */
    r = ext2_metadata_open_volume(&system, &m);

    if (r < 0)
        errx(1, "%s: %s", v->device, strerror(-r));
    for (size_t i = 0; i < s->n_files; i++) {
        r = ext2_metadata_of_inode(m, s->files[i].inode, &ranges);
        if (r < 0)
            errx(1, "%s: %s", s->files[i].path, strerror(-r));
    }
    ext2_metadata_free(m);
    s->metadata = calloc(ranges.n + 1, sizeof(PackContentMetadata));
    for (size_t i = 0; s->metadata && i < ranges.n; i++)
        s->metadata[s->n_metadata++] = (PackContentMetadata){.offset = ranges.ranges[i].offset,
                                                             .length = ranges.ranges[i].length,
                                                             .probability = 1};
}

/* Adds the items of a btrfs or xfs. */
static void add_items(PackContentVolume *s, const Volume *v)
{
    _cleanup_(metadata_deriver_freep) MetadataDeriver *d = NULL;
    _cleanup_free_ DerivedMetadata *derived = NULL;
    _cleanup_close_ int fd = open(v->target, O_PATH | O_DIRECTORY | O_CLOEXEC);
    Volume system = *v;
    size_t n = 0;
    int r;

    system.of_system = true;
    r = metadata_deriver_new(&system, fd, &d);
    for (size_t i = 0; r >= 0 && i < s->n_files; i++)
        r = metadata_deriver_note(d,
                                  &(NotedFile){s->files[i].path, s->files[i].inode,
                                               s->files[i].directory && !s->files[i].looked_up, 1});
    for (size_t i = 0; r >= 0 && i < s->n_data; i++)
        r = metadata_deriver_note_data(d, s->files[s->data[i].file].inode,
                                       &(PredictedRange){s->data[i].offset, s->data[i].length, 1},
                                       s->data[i].physical);
    if (r >= 0)
        r = metadata_deriver_finish(d, &derived, &n);
    if (r < 0)
        errx(1, "%s: %s", v->device, strerror(-r));
    s->metadata = calloc(n + 1, sizeof(PackContentMetadata));
    for (size_t i = 0; s->metadata && i < n; i++)
        s->metadata[s->n_metadata++] = (PackContentMetadata){
                derived[i].range.offset, derived[i].range.length, 1, derived[i].item};
}

static void add_volume(PackContent *c, const VolumeTable *t, const char *mountpoint,
                       const Options *o)
{
    PackContentVolume *s;
    const Volume *v = NULL;

    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->volumes[i].target, mountpoint) == 0)
            v = &t->volumes[i];
    if (!v)
        errx(1, "%s: no local filesystem is mounted here", mountpoint);
    if (grow_array(&c->volumes, &c->allocated_volumes, c->n_volumes + 1,
                   sizeof(PackContentVolume)) < 0)
        errx(1, "out of memory");
    s = &c->volumes[c->n_volumes++];
    *s = (PackContentVolume){
            .subvolume_id = v->subvolume_id,
            .device_size = o->device_size ? o->device_size : v->size_bytes,
            .fstype = strdup(v->fstype),
            .mountpoint = strdup(v->mountpoint),
            .device_class = o->device_class >= 0 ? (DeviceClass)o->device_class : v->device_class,
            .flags = (v->rotational ? PACK_VOLUME_ROTATIONAL : 0) |
                     (strcmp(v->fstype, "btrfs") != 0 ? PACK_VOLUME_PHYSICAL : 0) |
                     (strncmp(v->fstype, "ext", 3) != 0 ? PACK_VOLUME_TOUCH_ENTRIES : 0),
    };
    memcpy(s->uuid, v->uuid_bytes, sizeof(s->uuid));
    add_files(s, mountpoint, o);
    if (o->metadata && volume_is_ext(v))
        add_metadata(s, v);
    else if (o->metadata && volume_has_items(v))
        add_items(s, v);
    placed_ranges_sort(&(PlacedRangeList){s->data, s->n_data, s->allocated_data});
}

int main(int argc, char **argv)
{
    static const struct option longopts[] = {
            {"stage", required_argument, NULL, 's'},
            {"policy", required_argument, NULL, 'p'},
            {"reason", required_argument, NULL, 'r'},
            {"class", required_argument, NULL, 'c'},
            {"deadline", required_argument, NULL, 'd'},
            {"control", required_argument, NULL, 'n'},
            {"device-size", required_argument, NULL, 'z'},
            {"metadata", no_argument, NULL, 'm'},
            {"volatile", no_argument, NULL, 'v'},
            {"looked-up", no_argument, NULL, 'l'},
            {NULL, 0, NULL, 0},
    };
    _cleanup_pack_content_ PackContent *c = calloc(1, sizeof(PackContent));
    _cleanup_volume_table_ VolumeTable volumes = {0};
    Options o = {.stage = STAGE_LOGIN, .policy = POLICY_IDLE, .device_class = -1};
    FILE *f;
    void *pack = NULL;
    size_t size;
    int k, r = 0;

    while ((k = getopt_long(argc, argv, "", longopts, NULL)) >= 0) {
        switch (k) {
        case 's':
            o.stage = stage_from_string(optarg);
            r = (int)o.stage;
            break;
        case 'p':
            o.policy = policy_from_string(optarg);
            r = (int)o.policy;
            break;
        case 'r':
            o.reason = policy_reason_from_string(optarg);
            r = (int)o.reason;
            break;
        case 'c':
            o.device_class = (int)device_class_from_string(optarg);
            r = o.device_class;
            break;
        case 'd':
            r = parse_u64(optarg, &o.deadline);
            break;
        case 'n':
            r = parse_u64(optarg, &o.control);
            break;
        case 'z':
            r = parse_u64(optarg, &o.device_size);
            break;
        case 'm':
            o.metadata = true;
            break;
        case 'v':
            o.written_in_place = true;
            break;
        case 'l':
            o.looked_up = true;
            break;
        default:
            return 2;
        }
        if (r < 0)
            errx(2, "%s?", optarg);
    }
    if (argc - optind < 1 || !c)
        errx(2, "tool-mkpack [OPTION...] OUTPUT MOUNTPOINT...");
    read_wanted();
    if (n_wanted > 1)
        qsort(wanted, n_wanted, sizeof(Wanted), by_inode);
    r = volume_table_read(AT_FDCWD, "/", &volumes);
    if (r < 0)
        errx(1, "volumes: %s", strerror(-r));
    c->stage = o.stage;
    c->policy = o.policy;
    c->reason = o.reason;
    c->deadline_usec = o.deadline;
    c->control_interval = (uint32_t)o.control;
    c->created_realtime = clock_now(CLOCK_REALTIME);
    for (int i = optind + 1; i < argc; i++)
        add_volume(c, &volumes, argv[i], &o);
    r = pack_write(c, &pack, &size);
    if (r < 0)
        errx(1, "pack: %s", strerror(-r));
    f = fopen(argv[optind], "we");
    if (!f || fwrite(pack, size, 1, f) != 1 || fflush(f) != 0)
        err(1, "%s", argv[optind]);
    for (size_t i = 0; i < n_wanted; i++)
        free(wanted[i].path);
    free(wanted);
    free(pack);
    return 0;
}
