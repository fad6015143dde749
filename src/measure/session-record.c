/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/session-record.h"

#include "base/json-util.h"

#include <string.h>

static const char *const flag_names[] = {
        "control", "incomplete", "exact",  "second-login", "soft-reboot", "offline-update",
        "fsck",    "unsettled",  "shared", "autologin",    "light",
};
_Static_assert((1U << ELEMENTSOF(flag_names)) - 1 == _SESSION_FLAGS_ALL, "each flag has a name");

static const char *const usage_names[_USAGE_SOURCE_MAX] = {
        [USAGE_NONE] = "none",
        [USAGE_PER_FILE] = "per-file",
        [USAGE_PER_PAGE] = "per-page",
};

static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
#define NUMBER(name)                         \
    {                                        \
#name, offsetof(SessionRecord, name) \
    }
        NUMBER(start_realtime_usec), NUMBER(ready_usec),        NUMBER(firmware_usec),
        NUMBER(loader_usec),         NUMBER(kernel_usec),       NUMBER(initrd_usec),
        NUMBER(finished_usec),       NUMBER(io_some_usec),      NUMBER(io_full_usec),
        NUMBER(disk_reads),          NUMBER(disk_read_bytes),   NUMBER(replay_usec),
        NUMBER(replay_files),        NUMBER(replay_data_bytes), NUMBER(replay_metadata_bytes),
        NUMBER(predicted_usec),      NUMBER(memory_bytes),      NUMBER(packages_usec),
        NUMBER(early_usec),          NUMBER(began_usec),
};

static const struct {
    const char *key;
    size_t offset;
} usage_numbers[] = {
#define USAGE(name)                      \
    {                                    \
#name, offsetof(PackUsage, name) \
    }
        USAGE(hit_files), USAGE(waste_files), USAGE(miss_files),
        USAGE(hit_bytes), USAGE(waste_bytes), USAGE(miss_bytes),
};

static const struct {
    const char *key;
    size_t offset, size;
} strings[] = {
#define STRING(name)                                                                \
    {                                                                               \
#name, offsetof(SessionRecord, name), sizeof(((SessionRecord *)NULL)->name) \
    }
        STRING(boot_id),      STRING(reason), STRING(outcome),   STRING(kernel),
        STRING(distribution), STRING(device), STRING(scheduler), STRING(disk),
};

const char *usage_source_to_string(UsageSource s)
{
    return (int)s < 0 || s >= _USAGE_SOURCE_MAX ? NULL : usage_names[s];
}

const char *usage_source_unit(UsageSource s)
{
    return s == USAGE_PER_FILE ? "file" : s == USAGE_PER_PAGE ? "page" : NULL;
}

UsageSource usage_source_from_string(const char *s)
{
    return (UsageSource)string_table_lookup(usage_names, ELEMENTSOF(usage_names), s);
}

json_object *session_flags_to_json(unsigned flags)
{
    return json_flags(flags, flag_names, ELEMENTSOF(flag_names));
}

PackUsage pack_usage_empty(void)
{
    PackUsage u = {.source = USAGE_NONE};

    for (size_t i = 0; i < ELEMENTSOF(usage_numbers); i++)
        *(uint64_t *)((char *)&u + usage_numbers[i].offset) = SESSION_UNKNOWN;
    return u;
}

SessionRecord session_record_empty(Stage stage)
{
    SessionRecord s = {.stage = stage, .uid = UID_INVALID, .usage = pack_usage_empty()};

    for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
        *(uint64_t *)((char *)&s + numbers[i].offset) = SESSION_UNKNOWN;
    return s;
}

bool session_was_replayed(const SessionRecord *s)
{
    if (s->policy == POLICY_OFF)
        return false;
    if (strcmp(s->outcome, "done") == 0 || strcmp(s->outcome, "running") == 0)
        return true;
    /* A replay that was stopped before it opened a file did nothing. */
    return strcmp(s->outcome, "stopped") == 0 && s->replay_files > 0;
}

uint64_t session_compared_usec(const SessionRecord *s)
{
    bool is_delayed = s->early_usec != SESSION_UNKNOWN && s->early_usec < s->ready_usec;

    return is_delayed && !session_was_replayed(s) ? s->ready_usec - s->early_usec : s->ready_usec;
}

uint64_t session_userspace_usec(const SessionRecord *s)
{
    uint64_t initrd = s->initrd_usec != SESSION_UNKNOWN ? s->initrd_usec : 0;

    if (s->finished_usec == SESSION_UNKNOWN || s->kernel_usec == SESSION_UNKNOWN ||
        s->kernel_usec > s->finished_usec || initrd > s->finished_usec - s->kernel_usec)
        return SESSION_UNKNOWN;
    return s->finished_usec - s->kernel_usec - initrd;
}

/* Adds the numbers of files by class of probability, if any file was planned. */
static void add_classes(JsonWriter *w, const PackUsage *u)
{
    uint64_t planned[USAGE_CLASSES], opened[USAGE_CLASSES], total = 0;

    for (size_t i = 0; i < USAGE_CLASSES; i++) {
        planned[i] = u->planned[i];
        opened[i] = u->opened[i];
        total += planned[i];
    }
    if (total == 0)
        return;
    json_writer_add_numbers(w, "planned", planned, USAGE_CLASSES);
    json_writer_add_numbers(w, "opened", opened, USAGE_CLASSES);
}

void pack_usage_write(const PackUsage *u, JsonWriter *w)
{
    json_writer_add_string(w, "usage", usage_source_to_string(u->source));
    for (size_t i = 0; i < ELEMENTSOF(usage_numbers); i++) {
        uint64_t value = *(const uint64_t *)((const char *)u + usage_numbers[i].offset);

        if (value != SESSION_UNKNOWN)
            json_writer_add_u64(w, usage_numbers[i].key, value);
    }
    add_classes(w, u);
}

int session_record_to_line(const SessionRecord *s, char **ret, size_t *ret_size)
{
    _cleanup_json_writer_ JsonWriter w = {.compact = true};

    json_writer_add_u64(&w, "version", SESSION_RECORD_VERSION);
    json_writer_add_string(&w, "stage", stage_to_string(s->stage));
    if (s->uid != UID_INVALID)
        json_writer_add_u64(&w, "uid", s->uid);
    json_writer_add_flags(&w, "flags", s->flags, flag_names, ELEMENTSOF(flag_names));
    json_writer_add_string(&w, "policy", policy_to_string(s->policy));
    for (size_t i = 0; i < ELEMENTSOF(strings); i++) {
        const char *value = (const char *)s + strings[i].offset;

        if (*value)
            json_writer_add_string(&w, strings[i].key, value);
    }
    for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
        uint64_t value = *(const uint64_t *)((const char *)s + numbers[i].offset);

        if (value != SESSION_UNKNOWN)
            json_writer_add_u64(&w, numbers[i].key, value);
    }
    pack_usage_write(&s->usage, &w);
    return json_writer_finish_line(&w, ret, ret_size);
}

static int read_flags(json_object *o, unsigned *ret)
{
    json_object *a;
    unsigned flags = 0;
    int r = json_get_array(o, "flags", 64, &a);

    for (size_t i = 0; r >= 0 && i < json_object_array_length(a); i++) {
        const char *word;
        int k;

        r = json_at_string(a, i, &word);
        k = r < 0 ? r : string_table_lookup(flag_names, ELEMENTSOF(flag_names), word);
        if (k >= 0)
            flags |= 1U << k;
    }
    if (r >= 0)
        *ret = flags;
    return r;
}

/* Reads those members of a record that are words. Returns 0 or -EBADMSG. */
static int read_words(json_object *o, SessionRecord *s)
{
    const char *stage, *policy;

    if (json_get_string(o, "stage", &stage) < 0 || json_get_string(o, "policy", &policy) < 0)
        return -EBADMSG;
    s->stage = stage_from_string(stage);
    s->policy = policy_from_string(policy);
    if ((s->stage != STAGE_BOOT && s->stage != STAGE_LOGIN) || (int)s->policy < 0)
        return -EBADMSG;
    return read_flags(o, &s->flags);
}

static int read_strings(json_object *o, SessionRecord *s)
{
    for (size_t i = 0; i < ELEMENTSOF(strings); i++) {
        char *to = (char *)s + strings[i].offset;
        const char *value;

        if (!json_object_object_get_ex(o, strings[i].key, NULL))
            continue;
        if (json_get_string(o, strings[i].key, &value) < 0 || strlen(value) >= strings[i].size)
            return -EBADMSG;
        memcpy(to, value, strlen(value) + 1);
    }
    return 0;
}

static int read_numbers(json_object *o, SessionRecord *s)
{
    uint64_t uid;

    for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
        if (json_object_object_get_ex(o, numbers[i].key, NULL) &&
            json_get_u64(o, numbers[i].key, SESSION_UNKNOWN - 1,
                         (uint64_t *)((char *)s + numbers[i].offset)) < 0)
            return -EBADMSG;
    if (!json_object_object_get_ex(o, "uid", NULL))
        return 0;
    if (json_get_u64(o, "uid", UID_INVALID - 1, &uid) < 0)
        return -EBADMSG;
    s->uid = (uint32_t)uid;
    return 0;
}

static int read_class_array(json_object *o, const char *key, uint32_t *ret)
{
    json_object *a;

    if (json_get_array(o, key, USAGE_CLASSES, &a) < 0 ||
        json_object_array_length(a) != USAGE_CLASSES)
        return -EBADMSG;
    for (size_t i = 0; i < USAGE_CLASSES; i++) {
        uint64_t n;

        if (json_at_u64(a, i, UINT32_MAX, &n) < 0)
            return -EBADMSG;
        ret[i] = (uint32_t)n;
    }
    return 0;
}

static int read_classes(json_object *o, PackUsage *u)
{
    if (!json_object_object_get_ex(o, "planned", NULL))
        return 0;
    if (read_class_array(o, "planned", u->planned) < 0 ||
        read_class_array(o, "opened", u->opened) < 0)
        return -EBADMSG;
    for (size_t i = 0; i < USAGE_CLASSES; i++)
        if (u->opened[i] > u->planned[i])
            return -EBADMSG;
    return 0;
}

int pack_usage_read(json_object *o, PackUsage *ret)
{
    PackUsage u = pack_usage_empty();
    const char *source;

    if (json_get_string(o, "usage", &source) < 0)
        return -EBADMSG;
    u.source = usage_source_from_string(source);
    if ((int)u.source < 0)
        return -EBADMSG;
    for (size_t i = 0; i < ELEMENTSOF(usage_numbers); i++)
        if (json_object_object_get_ex(o, usage_numbers[i].key, NULL) &&
            json_get_u64(o, usage_numbers[i].key, SESSION_UNKNOWN - 1,
                         (uint64_t *)((char *)&u + usage_numbers[i].offset)) < 0)
            return -EBADMSG;
    CHECK(read_classes(o, &u));
    *ret = u;
    return 0;
}

int session_record_from_line(const char *line, size_t size, SessionRecord *ret)
{
    SessionRecord s = session_record_empty(STAGE_BOOT);
    _cleanup_json_ json_object *o = NULL;
    const char *reason;
    uint64_t version;
    int r = json_parse(line, size, 3, &o, &reason);

    if (r < 0)
        return r;
    if (!json_object_is_type(o, json_type_object) ||
        json_get_u64(o, "version", UINT32_MAX, &version) < 0)
        return -EBADMSG;
    if (version != SESSION_RECORD_VERSION)
        return -EPROTONOSUPPORT;
    r = read_words(o, &s);
    if (r >= 0)
        r = read_strings(o, &s);
    if (r >= 0)
        r = read_numbers(o, &s);
    if (r >= 0)
        r = pack_usage_read(o, &s.usage);
    if (r >= 0 && s.start_realtime_usec == SESSION_UNKNOWN)
        r = -EBADMSG;
    if (r >= 0)
        *ret = s;
    return r;
}
