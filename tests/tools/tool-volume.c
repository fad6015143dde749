/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the results of src/volume as JSON, for tests/bats/volume.bats.
 *
 *     tool-volume volumes [PREFIX]                 what volume_table_read() says
 *     tool-volume fixture DIRECTORY [PREFIX]       the same for a recorded machine
 *     tool-volume extents FILE [MAX]               extents_read()
 *     tool-volume inode DEVICE INODE…              the union of ext2_metadata_of_inode()
 *     tool-volume filter DEVICE START-END…         ext2_metadata_filter() of byte ranges
 *     tool-volume bitmaps DEVICE                   ext2_metadata_block_bitmaps()
 *
 * On failure it prints "tool-volume: NAME: ERROR". */

#include "volume/ext2-metadata.h"
#include "volume/extents.h"
#include "volume/volume.h"

#include <err.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>

static int print(json_object *o)
{
    puts(json_object_to_json_string_ext(o,
                                        JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    return 0;
}

__attribute__((noreturn)) static void fail(int r, const char *what)
{
    errno = -r;
    err(1, "%s", what);
}

static void add_string(json_object *o, const char *key, const char *value)
{
    json_object_object_add(o, key, value ? json_object_new_string(value) : NULL);
}

static void add_number(json_object *o, const char *key, uint64_t value)
{
    json_object_object_add(o, key, json_object_new_uint64(value));
}

static int volumes(int sys_fd, const char *prefix)
{
    json_object *all = json_object_new_object(), *list = json_object_new_array();
    json_object *automounts = json_object_new_array();
    _cleanup_volume_table_ VolumeTable t = {0};
    int r = volume_table_read(sys_fd, prefix, &t);

    if (r < 0)
        fail(r, prefix);
    for (size_t i = 0; i < t.n; i++) {
        json_object *o = json_object_new_object();
        const Volume *v = &t.volumes[i];

        add_string(o, "uuid", v->uuid);
        add_string(o, "fstype", v->fstype);
        add_string(o, "target", v->target);
        add_string(o, "mountpoint", v->mountpoint);
        add_string(o, "subvolume", v->subvolume);
        add_number(o, "subvolume_id", v->subvolume_id);
        add_number(o, "st_dev", v->st_dev);
        add_number(o, "block_dev", v->block_dev);
        add_string(o, "device", v->device);
        add_string(o, "disk", v->disk);
        add_string(o, "scheduler", v->scheduler);
        json_object_object_add(o, "rotational", json_object_new_boolean(v->rotational));
        json_object_object_add(o, "removable", json_object_new_boolean(v->removable));
        json_object_object_add(o, "of_system", json_object_new_boolean(v->of_system));
        add_string(o, "class", device_class_to_string(v->device_class));
        add_number(o, "encryption", v->encryption.level);
        add_number(o, "size_bytes", v->size_bytes);
        add_number(o, "read_ahead_kb", v->read_ahead_kb);
        add_string(o, "read_ahead_path", v->read_ahead_path);
        json_object_array_add(list, o);
    }
    for (size_t i = 0; i < t.n_automounts; i++)
        json_object_array_add(automounts, json_object_new_string(t.automounts[i]));
    json_object_object_add(all, "volumes", list);
    json_object_object_add(all, "automounts", automounts);
    return print(all);
}

static int extents(const char *file, size_t max)
{
    json_object *all = json_object_new_object(), *list = json_object_new_array();
    _cleanup_extent_list_ ExtentList l = {0};
    _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : extents_read(fd, max, &l);

    if (r < 0)
        fail(r, file);
    for (size_t i = 0; i < l.n; i++) {
        json_object *o = json_object_new_object();

        add_number(o, "logical", l.extents[i].logical);
        add_number(o, "physical", l.extents[i].physical);
        add_number(o, "length", l.extents[i].length);
        json_object_array_add(list, o);
    }
    json_object_object_add(all, "extents", list);
    add_number(all, "skipped", l.n_skipped);
    return print(all);
}

static int ranges(const RangeSet *s)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < s->n; i++) {
        json_object *o = json_object_new_array();

        json_object_array_add(o, json_object_new_uint64(s->ranges[i].offset));
        json_object_array_add(o, json_object_new_uint64(range_end(&s->ranges[i])));
        json_object_array_add(list, o);
    }
    return print(list);
}

static int metadata(const char *verb, const char *device, char **arguments)
{
    _cleanup_range_set_ RangeSet s = {0}, kept = {0};
    Ext2Metadata *m;
    int r = ext2_metadata_open(device, &m);

    if (r < 0)
        fail(r, device);
    for (; r >= 0 && *arguments; arguments++) {
        char *end;
        uint64_t n = strtoull(*arguments, &end, 10);

        if (strcmp(verb, "inode") == 0)
            r = ext2_metadata_of_inode(m, n, &s);
        else
            r = range_set_insert(&s, n, strtoull(end + 1, NULL, 10) - n);
    }
    if (r >= 0 && strcmp(verb, "bitmaps") == 0)
        r = ext2_metadata_block_bitmaps(m, &s);
    if (r >= 0 && strcmp(verb, "filter") == 0)
        r = ext2_metadata_filter(m, &s, &kept);
    ext2_metadata_free(m);
    if (r < 0)
        fail(r, verb);
    return ranges(strcmp(verb, "filter") == 0 ? &kept : &s);
}

int main(int argc, char *argv[])
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "volumes") == 0)
        return volumes(AT_FDCWD, argc > 2 ? argv[2] : "/");
    if (argc < 3)
        errx(2, "see the source");
    if (strcmp(verb, "fixture") == 0) {
        int fd = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
            err(1, "%s", argv[2]);
        return volumes(fd, argc > 3 ? argv[3] : "/");
    }
    if (strcmp(verb, "extents") == 0)
        return extents(argv[2], argc > 3 ? strtoul(argv[3], NULL, 10) : EXTENTS_PER_FILE_MAX);
    return metadata(verb, argv[2], argv + 3);
}
