/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the pack's writer and its validating reader. A small pack is checked with every single-byte
 * corruption and every truncation, and, with a corrected checksum, against each rule of pack.h. */

#include "base/hash.h"
#include "pack/checksum.h"
#include "pack/pack-writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DATA(f, o, l, at, msec, p)                                                         \
    {                                                                                      \
        .file = f, .offset = o, .length = l, .physical = at, .need = (msec)*USEC_PER_MSEC, \
        .probability = p                                                                   \
    }

/* The content of a pack with two volumes, a directory and an empty file. Nothing in it is
 * allocated. */
typedef struct Fixture {
    PackContentMetadata metadata[2];
    PackContentFile files[3], more_files[1];
    PlacedRange data[3];
    PackContentVolume volumes[2];
    PackContent content;
} Fixture;

static void fixture(Fixture *f)
{
    static char ext4[] = "ext4", xfs[] = "xfs", root[] = "/", home[] = "/home";
    static char dot[] = ".", lib[] = "usr/lib/libc.so.6", empty[] = "etc/empty", user[] = "u/f";

    *f = (Fixture){
            .metadata = {{4096, 8192, 1.0, {0}},
                         {65536, 4096, 0.5, {METADATA_BTRFS_ITEM, 84, 257, UINT64_C(1) << 40}}},
            .files = {{dot, true, 2, 0, -1, 1, 0, 1.0},
                      {lib, false, 11, 10000, 123456789, -5, 20 * USEC_PER_MSEC, 0.75},
                      {empty, false, 12, 0, 0, 0, USEC_INFINITY, 0.1}},
            .more_files = {{user, false, 5, 4096, 1, 2, 3 * USEC_PER_MSEC, 1.0}},
            .data = {DATA(1, 8192, 4096, 0, 20, 0.75), DATA(1, 0, 4096, 1 << 20, 21, 1.0),
                     DATA(1, 4096, 4096, PHYSICAL_UNKNOWN, 22, 0.0)},
            .volumes = {{.uuid = {1, 2, 3},
                         .device_size = 1 << 21,
                         .fstype = ext4,
                         .mountpoint = root,
                         .device_class = DEVICE_CLASS_HDD,
                         .flags = PACK_VOLUME_ROTATIONAL | PACK_VOLUME_PHYSICAL},
                        {.uuid = {9},
                         .subvolume_id = 256,
                         .device_size = 1 << 20,
                         .fstype = xfs,
                         .mountpoint = home,
                         .device_class = DEVICE_CLASS_SSD,
                         .flags = PACK_VOLUME_TOUCH_ENTRIES}},
            .content = {.stage = STAGE_LOGIN,
                        .policy = POLICY_IDLE,
                        .control_interval = 10,
                        .salt = 0x1122334455667788,
                        .deadline_usec = 5000000,
                        .created_realtime = 42},
    };
    f->volumes[0].metadata = f->metadata;
    f->volumes[0].n_metadata = 2;
    f->volumes[0].files = f->files;
    f->volumes[0].n_files = 3;
    f->volumes[0].data = f->data;
    f->volumes[0].n_data = 3;
    f->volumes[1].files = f->more_files;
    f->volumes[1].n_files = 1;
    f->content.volumes = f->volumes;
    f->content.n_volumes = 2;
}

static size_t write_fixture(const Fixture *f, void **ret)
{
    size_t size;

    assert_int_equal(pack_write(&f->content, ret, &size), 0);
    return size;
}

static void what_was_written_is_read(void **state)
{
    _cleanup_free_ void *buf = NULL;
    Fixture f;
    size_t size;
    Pack p;

    fixture(&f);
    f.files[1].touched = true;
    size = write_fixture(&f, &buf);
    assert_int_equal(size % 8, 0);
    assert_int_equal(pack_open(buf, size, &p, NULL), 0);
    assert_int_equal(p.header->stage, STAGE_LOGIN);
    assert_int_equal(p.header->policy, POLICY_IDLE);
    assert_int_equal(le32toh(p.header->n_volumes), 2);
    assert_int_equal(le64toh(p.header->total_metadata_bytes), 12288);
    assert_int_equal(le64toh(p.header->total_data_bytes), 12288);
    assert_int_equal(le64toh(p.header->deadline_usec), 5000000);
    assert_string_equal(pack_string(&p, p.volumes[1].mountpoint), "/home");
    assert_string_equal(pack_string(&p, p.files[1].path), "usr/lib/libc.so.6");
    assert_int_equal(pack_item(&p.metadata[0]).reader, METADATA_OF_DEVICE);
    assert_int_equal(pack_item(&p.metadata[1]).reader, METADATA_BTRFS_ITEM);
    assert_int_equal(pack_item(&p.metadata[1]).type, 84);
    assert_int_equal(pack_item(&p.metadata[1]).object, 257);
    assert_true(pack_item(&p.metadata[1]).offset == UINT64_C(1) << 40);
    assert_true((int64_t)le64toh(p.files[0].mtime_nsec) == -1);
    assert_int_equal(le16toh(p.files[0].flags), PACK_FILE_DIRECTORY);
    assert_int_equal(le16toh(p.files[1].flags), PACK_FILE_TOUCHED);
    assert_int_equal(le16toh(p.files[1].probability), 49151);
    assert_int_equal(le32toh(p.volumes[1].first_file), 3);
    assert_int_equal(le32toh(p.data[0].file), 1);
    assert_true(le64toh(p.data[2].physical) == PHYSICAL_UNKNOWN);
}

/* Every range may be the first one of a sweep. */
static void the_begin_of_a_sweep_is_kept(void **state)
{
    PlacedRange data[1000] = {0};
    Fixture f;

    fixture(&f);
    for (size_t i = 0; i < 1000; i++)
        data[i] = (PlacedRange){.file = 1, .length = 4096, .physical = (i + 1) * 8192};
    f.volumes[0].data = data;
    for (size_t n = 1; n <= 1000; n = n * 3 + 7)
        for (size_t i = 0; i < n; i++) {
            _cleanup_free_ void *buf = NULL;
            size_t size;
            Pack p;

            f.volumes[0].n_data = n;
            f.volumes[0].sweep_start = (i + 1) * 8192 - 100;
            size = write_fixture(&f, &buf);
            assert_int_equal(pack_open(buf, size, &p, NULL), 0);
            assert_int_equal(pack_sweep_start(&p, &p.volumes[0]), i == 0 ? 0 : (i + 1) * 8192);
            assert_int_equal(pack_sweep_start(&p, &p.volumes[1]), 0);
        }
    f.volumes[0].sweep_start = UINT64_MAX;
    {
        _cleanup_free_ void *buf = NULL;
        size_t size = write_fixture(&f, &buf);
        Pack p;

        assert_int_equal(pack_open(buf, size, &p, NULL), 0);
        assert_int_equal(pack_sweep_start(&p, &p.volumes[0]), 0);
    }
}

/* Each machine writes the same bytes, whatever its byte order and page size, so that each can read
 * the packs of the others. tests/cross compares the file that $HEADSTART_TEST_PACK names. */
static void the_bytes_do_not_depend_on_the_machine(void **state)
{
    const char *path = getenv("HEADSTART_TEST_PACK");
    _cleanup_free_ void *buf = NULL;
    Fixture f;
    size_t size;

    fixture(&f);
    size = write_fixture(&f, &buf);
    if (path) {
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_int_equal(fwrite(buf, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
    }
    assert_int_equal(size, 720);
    assert_int_equal(hash64(buf, size, 0), UINT64_C(0x19a7cb0edfb3dbcc));
}

static void an_empty_pack_is_a_pack(void **state)
{
    PackContent c = {.stage = STAGE_BOOT, .policy = POLICY_GATE};
    _cleanup_free_ void *buf = NULL;
    size_t size;
    Pack p;

    assert_int_equal(pack_write(&c, &buf, &size), 0);
    assert_int_equal(size, sizeof(PackHeader));
    assert_int_equal(pack_open(buf, size, &p, NULL), 0);
}

static void every_single_byte_corruption_is_refused(void **state)
{
    _cleanup_free_ void *buf = NULL;
    Fixture f;
    size_t size;
    Pack p;

    fixture(&f);
    size = write_fixture(&f, &buf);
    for (size_t i = 0; i < size; i++)
        for (unsigned x = 1; x < 256; x++) {
            const char *reason = NULL;

            ((uint8_t *)buf)[i] ^= (uint8_t)x;
            if (pack_open(buf, size, &p, &reason) >= 0 || !reason)
                fail_msg("byte %zu ^ %#x was accepted", i, x);
            ((uint8_t *)buf)[i] ^= (uint8_t)x;
        }
    assert_int_equal(pack_open(buf, size, &p, NULL), 0);
}

static void every_truncation_is_refused(void **state)
{
    _cleanup_free_ void *buf = NULL;
    Fixture f;
    size_t size;
    Pack p;

    fixture(&f);
    size = write_fixture(&f, &buf);
    for (size_t n = 0; n < size; n++) {
        /* The buffer is at most 8 bytes longer, so that the sanitizer detects reads beyond it. */
        void *cut = aligned_alloc(8, ALIGN_UP(n + 1, (size_t)8));

        assert_non_null(cut);
        memcpy(cut, buf, n);
        assert_true(pack_open(cut, n, &p, NULL) < 0);
        free(cut);
    }
}

/* Positions in the fixture's pack. */
typedef struct Parts {
    PackHeader *header;
    PackVolume *volumes;
    PackMetadata *metadata;
    PackFile *files;
    PackData *data;
    char *strings;
} Parts;

static Parts parts_of(void *buf)
{
    Parts p = {.header = buf};

    p.volumes = (PackVolume *)(p.header + 1);
    p.metadata = (PackMetadata *)(p.volumes + 2);
    p.files = (PackFile *)(p.metadata + 2);
    p.data = (PackData *)(p.files + 4);
    p.strings = (char *)(p.data + 3);
    return p;
}

/* Breaks one rule, corrects the checksum, and expects `error`. */
#define REFUSED(error, ...)                                             \
    do {                                                                \
        _cleanup_free_ void *_buf = NULL;                               \
        const char *_reason = NULL;                                     \
        Fixture _f;                                                     \
        size_t _size;                                                   \
        Parts p;                                                        \
        Pack _p;                                                        \
        fixture(&_f);                                                   \
        _size = write_fixture(&_f, &_buf);                              \
        p = parts_of(_buf);                                             \
        __VA_ARGS__;                                                    \
        p.header->checksum = htole64(pack_checksum(_buf, _size));       \
        assert_int_equal(pack_open(_buf, _size, &_p, &_reason), error); \
        assert_non_null(_reason);                                       \
    } while (0)

static void each_rule_holds_behind_a_right_checksum(void **state)
{
    REFUSED(-EMEDIUMTYPE, p.header->magic[0] = 'X');
    REFUSED(-EPROTONOSUPPORT, p.header->version = htole32(PACK_FORMAT_VERSION + 1));
    REFUSED(-EPROTONOSUPPORT, p.header->version = htole32(1));
    REFUSED(-EPROTONOSUPPORT, p.header->header_size = htole32(136));
    REFUSED(-EBADMSG, p.header->file_size = htole64(8));
    REFUSED(-EBADMSG, p.header->stage = _STAGE_MAX);
    REFUSED(-EBADMSG, p.header->policy = _POLICY_MAX);
    REFUSED(-EBADMSG, p.header->reason = _POLICY_REASON_MAX);
    REFUSED(-EBADMSG, p.header->reserved0 = 1);
    REFUSED(-E2BIG, p.header->n_volumes = htole32(PACK_VOLUMES_MAX + 1));
    REFUSED(-EBADMSG, p.header->n_volumes = htole32(PACK_VOLUMES_MAX));
    REFUSED(-EBADMSG, p.header->n_metadata = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.header->n_files = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.header->n_data = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.header->strings_size = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.header->strings_size = htole32(le32toh(p.header->strings_size) - 9));
    REFUSED(-EBADMSG, p.strings[le32toh(p.header->strings_size) - 1] = 'x');

    REFUSED(-EBADMSG, p.volumes[0].first_metadata = htole32(1));
    REFUSED(-EBADMSG, p.volumes[0].n_metadata = htole32(3));
    REFUSED(-EBADMSG, p.volumes[0].n_metadata = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.volumes[1].first_file = htole32(2));
    REFUSED(-EBADMSG, p.volumes[1].n_files = htole32(0));
    REFUSED(-EBADMSG, p.volumes[0].n_data = htole32(2));
    REFUSED(-EBADMSG, p.volumes[0].fstype = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.volumes[0].mountpoint = p.header->strings_size);
    REFUSED(-EBADMSG, p.volumes[0].device_class = _DEVICE_CLASS_MAX);
    REFUSED(-EBADMSG, p.volumes[0].flags = htole32(1U << 31));
    REFUSED(-EBADMSG, p.volumes[1].reserved0 = 1);

    REFUSED(-EBADMSG, p.metadata[0].length = htole64(0));
    REFUSED(-EBADMSG, p.metadata[0].length = htole64(UINT64_MAX));
    REFUSED(-EBADMSG, p.metadata[1].offset = htole64(4096));
    REFUSED(-EBADMSG, p.metadata[1].offset = htole64((1 << 21) - 4095));
    REFUSED(-EBADMSG, p.metadata[1].offset = htole64(UINT64_MAX));
    REFUSED(-EBADMSG, p.metadata[0].reader = _METADATA_READER_MAX);
    REFUSED(-EBADMSG, p.metadata[0].item_type = 1);
    REFUSED(-EBADMSG, p.metadata[0].item_object = htole64(1));
    REFUSED(-EBADMSG, p.metadata[0].item_offset = htole64(1));

    REFUSED(-EBADMSG, p.files[0].path = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.strings[le32toh(p.files[1].path)] = '/');
    REFUSED(-EBADMSG, p.strings[le32toh(p.files[1].path) + 4] = '/');
    REFUSED(-EBADMSG, memcpy(p.strings + le32toh(p.files[1].path), "../", 3));
    REFUSED(-EBADMSG, p.files[0].inode = htole64(12));
    REFUSED(-EBADMSG, p.files[0].flags = htole16(PACK_FILE_FLAGS_ALL + 1));
    REFUSED(-EBADMSG, p.files[1].size = htole64(UINT64_MAX));
    REFUSED(-EBADMSG, p.files[1].reserved0[3] = 1);

    REFUSED(-EBADMSG, p.data[0].file = htole32(3));
    REFUSED(-EBADMSG, p.data[0].file = htole32(UINT32_MAX));
    REFUSED(-EBADMSG, p.data[0].file = htole32(0));
    REFUSED(-EBADMSG, p.data[0].file = htole32(2));
    REFUSED(-EBADMSG, p.data[0].offset = htole64(1));
    REFUSED(-EBADMSG, p.data[0].offset = htole64(12288));
    REFUSED(-EBADMSG, p.data[0].length = htole64(0));
    REFUSED(-EBADMSG, p.data[0].length = htole64(UINT64_MAX));
    REFUSED(-EBADMSG, p.data[0].physical = htole64((1 << 20) + 1));
    REFUSED(-EBADMSG, p.data[2].reserved0[5] = 1);
}

static void a_header_is_read_alone(void **state)
{
    _cleanup_free_ void *buf = NULL;
    const char *reason = NULL;
    PackHeader h, changed;
    Fixture f;
    size_t size;

    fixture(&f);
    size = write_fixture(&f, &buf);
    /* If it read beyond the header, the sanitizer would report an error. */
    memcpy(&changed, buf, sizeof(changed));
    assert_int_equal(pack_read_header(&changed, size, &h, &reason), 0);
    assert_memory_equal(&h, buf, sizeof(h));
    assert_int_equal(pack_read_header(&changed, size - 8, &h, &reason), -EBADMSG);
    assert_string_equal(reason, "truncated, or with bytes after its end");
    assert_int_equal(pack_read_header(&changed, sizeof(h) - 1, &h, NULL), -EBADMSG);
    assert_int_equal(pack_read_header(&changed, 4, &h, NULL), -EMEDIUMTYPE);
    changed.policy = _POLICY_MAX;
    assert_int_equal(pack_read_header(&changed, size, &h, &reason), -EBADMSG);
    assert_string_equal(reason, "unknown stage or policy");
}

static void a_pack_over_the_size_limit_is_refused_unread(void **state)
{
    _cleanup_free_ void *buf = NULL;
    Fixture f;
    Pack p;

    fixture(&f);
    write_fixture(&f, &buf);
    /* If pack_open() read beyond the buffer, the sanitizer would report an error. */
    assert_int_equal(pack_open(buf, (size_t)PACK_SIZE_MAX + 1, &p, NULL), -E2BIG);
}

static void the_writer_refuses_what_is_not_in_order(void **state)
{
    void *buf;
    size_t size;
    Fixture f;

    fixture(&f);
    f.metadata[1].offset = 4096;
    assert_int_equal(pack_write(&f.content, &buf, &size), -EINVAL);
    fixture(&f);
    f.files[0].inode = 99;
    assert_int_equal(pack_write(&f.content, &buf, &size), -EINVAL);
    fixture(&f);
    f.data[0].physical = PHYSICAL_UNKNOWN;
    assert_int_equal(pack_write(&f.content, &buf, &size), -EINVAL);
    fixture(&f);
    f.data[0].length = 1 << 20;
    assert_int_equal(pack_write(&f.content, &buf, &size), -EINVAL);
    fixture(&f);
    f.data[0].file = 7;
    assert_int_equal(pack_write(&f.content, &buf, &size), -EINVAL);
    fixture(&f);
    f.content.n_volumes = PACK_VOLUMES_MAX + 1;
    f.content.volumes = calloc(f.content.n_volumes, sizeof(PackContentVolume));
    assert_non_null(f.content.volumes);
    for (size_t i = 0; i < f.content.n_volumes; i++)
        f.content.volumes[i] = f.volumes[1];
    assert_int_equal(pack_write(&f.content, &buf, &size), -E2BIG);
    free(f.content.volumes);
}

static void paths_that_lead_out_are_not_safe(void **state)
{
    static const char *const bad[] = {"",     "/",    "/a",     "a/",  "a//b", "..",
                                      "../a", "a/..", "a/../b", "./a", "a/.",  "a/./b"};
    static const char *const good[] = {".", "a", "a/b", "...", "a/..b", ".a/b.", "a b/\xff"};

    for (size_t i = 0; i < ELEMENTSOF(bad); i++)
        assert_false(pack_path_is_safe(bad[i]));
    for (size_t i = 0; i < ELEMENTSOF(good); i++)
        assert_true(pack_path_is_safe(good[i]));
}

static void one_boot_in_n_is_a_control_session(void **state)
{
    _cleanup_free_ void *buf = NULL;
    Fixture f;
    size_t size;
    unsigned n = 0;
    Pack p;

    fixture(&f);
    size = write_fixture(&f, &buf);
    assert_int_equal(pack_open(buf, size, &p, NULL), 0);
    for (unsigned i = 0; i < 10000; i++) {
        char id[33];

        snprintf(id, sizeof(id), "%032x", i);
        n += pack_is_control(&p, id);
        assert_int_equal(pack_is_control(&p, id), pack_is_control(&p, id));
    }
    assert_in_range(n, 900, 1100);
    f.content.control_interval = 0;
    free(TAKE_PTR(buf));
    size = write_fixture(&f, &buf);
    assert_int_equal(pack_open(buf, size, &p, NULL), 0);
    assert_false(pack_is_control(&p, "00000000000000000000000000000000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_was_written_is_read),
            cmocka_unit_test(the_begin_of_a_sweep_is_kept),
            cmocka_unit_test(the_bytes_do_not_depend_on_the_machine),
            cmocka_unit_test(an_empty_pack_is_a_pack),
            cmocka_unit_test(every_single_byte_corruption_is_refused),
            cmocka_unit_test(every_truncation_is_refused),
            cmocka_unit_test(each_rule_holds_behind_a_right_checksum),
            cmocka_unit_test(a_header_is_read_alone),
            cmocka_unit_test(a_pack_over_the_size_limit_is_refused_unread),
            cmocka_unit_test(the_writer_refuses_what_is_not_in_order),
            cmocka_unit_test(paths_that_lead_out_are_not_safe),
            cmocka_unit_test(one_boot_in_n_is_a_control_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
