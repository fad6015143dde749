/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/report.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/journal.h"
#include "base/log.h"
#include "base/text.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define REPORT_SIZE_MAX (64U * 1024)

/* A growing line. If memory runs out, `failed` becomes true and stays so. */
typedef struct Text {
    char *text;
    size_t n, allocated;
    bool failed;
} Text;

static void _printf_(2, 3) add(Text *t, const char *format, ...)
{
    va_list ap;
    int n;

    if (t->failed)
        return;
    va_start(ap, format);
    n = vsnprintf(t->text ? t->text + t->n : NULL, t->allocated - t->n, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n < t->allocated - t->n) {
        t->n += (size_t)MAX(n, 0);
        return;
    }
    if (grow_array(&t->text, &t->allocated, t->n + (size_t)n + 1, 1) < 0) {
        t->failed = true;
        return;
    }
    va_start(ap, format);
    vsnprintf(t->text + t->n, t->allocated - t->n, format, ap);
    va_end(ap);
    t->n += (size_t)n;
}

static char *finish(Text *t)
{
    if (t->failed) {
        free(t->text);
        return NULL;
    }
    return t->text;
}

/* Appends a name for people: hidden characters (base/text.h) and bytes that are not UTF-8 are
 * written as %XX. */
static void add_name(Text *t, const char *s)
{
    while (*s) {
        uint32_t c;
        size_t n = text_read_character(s, &c);
        bool escape = n == 0 || text_is_hidden(c);

        for (n = MAX(n, (size_t)1); n > 0; n--, s++)
            add(t, escape ? "%%%02X" : "%c", (unsigned char)*s);
    }
}

static const char *outcome_to_string(ReplayOutcome o)
{
    static const char *const names[_REPLAY_OUTCOME_MAX] = {
            [REPLAY_OUTCOME_DONE] = "done",         [REPLAY_OUTCOME_RUNNING] = "running",
            [REPLAY_OUTCOME_STOPPED] = "stopped",   [REPLAY_OUTCOME_CONTROL] = "control",
            [REPLAY_OUTCOME_DISABLED] = "disabled", [REPLAY_OUTCOME_OFF] = "off",
            [REPLAY_OUTCOME_DRY_RUN] = "dry-run",   [REPLAY_OUTCOME_LOADING] = "loading",
            [REPLAY_OUTCOME_FAILED] = "failed",
    };

    return names[o];
}

static const char *hold_end_to_string(HoldEnd e)
{
    static const char *const names[_HOLD_END_MAX] = {
            [HOLD_END_SWEPT] = "swept",
            [HOLD_END_PLANNED] = "planned",
            [HOLD_END_DEADLINE] = "deadline",
            [HOLD_END_PACK] = "pack-late",
    };

    return names[e];
}

static const char *why_nothing(ReplayOutcome o)
{
    switch (o) {
    case REPLAY_OUTCOME_CONTROL:
        return "a control session";
    case REPLAY_OUTCOME_DISABLED:
        return "headstart=0 is on the kernel command line";
    case REPLAY_OUTCOME_OFF:
        return "the policy is off";
    default:
        return NULL;
    }
}

static void add_counted(Text *t, uint64_t n, const char *one, const char *many)
{
    add(t, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

char *report_to_text(const Report *x)
{
    char bytes[FORMAT_BYTES_MAX], time[FORMAT_TIMESPAN_MAX];
    const ReplayResult *s = &x->result;
    const char *separator = " (";
    uint64_t skipped = 0;
    Text t = {0};

    add_name(&t, x->pack);
    if (why_nothing(x->outcome)) {
        add(&t, ": nothing replayed: %s", why_nothing(x->outcome));
        return finish(&t);
    }
    add(&t, ": ");
    add_counted(&t, s->n_metadata, "metadata range", "metadata ranges");
    add(&t, " (%s), ", format_bytes(bytes, sizeof(bytes), s->metadata_bytes));
    add_counted(&t, s->n_opened, "file", "files");
    add(&t, ", ");
    add_counted(&t, s->n_data, "data range", "data ranges");
    add(&t, " (%s) ", format_bytes(bytes, sizeof(bytes), s->data_bytes));
    if (x->outcome == REPLAY_OUTCOME_DRY_RUN)
        add(&t, "would be read");
    else
        add(&t, "%s in %s", s->resident ? "resident" : "requested",
            format_timespan(time, sizeof(time), x->duration_usec));
    if (x->outcome == REPLAY_OUTCOME_STOPPED)
        add(&t, ", then stopped");
    if (x->hold_end == HOLD_END_DEADLINE || x->hold_end == HOLD_END_PACK)
        add(&t, ", the boot went on after %s: %s",
            format_timespan(time, sizeof(time), x->held_usec),
            x->hold_end == HOLD_END_PACK ? "the pack could not be read in time"
                                         : "the deadline had passed");

    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        skipped += s->n_skipped[i];
    add(&t, "; skipped %" PRIu64, skipped);
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        if (s->n_skipped[i] > 0) {
            add(&t, "%s%" PRIu64 " %s", separator, s->n_skipped[i],
                replay_skip_to_string((ReplaySkip)i));
            separator = ", ";
        }
    add(&t, "%s", skipped > 0 ? ")" : "");
    return finish(&t);
}

static void log_expired_hold(const Report *x)
{
    char time[FORMAT_TIMESPAN_MAX];
    JournalEntry e;

    journal_entry_begin(&e, JOURNAL_HOLD_EXPIRED, LOG_NOTICE);
    journal_entry_add(&e, "HEADSTART_HELD_USEC", "%" PRIu64, x->held_usec);
    journal_entry_add(&e, "HEADSTART_HOLD_END", "%s", hold_end_to_string(x->hold_end));
    journal_log(&e, LOG_NOTICE,
                "headstart-replay: the boot went on after %s, before the disk was swept",
                format_timespan(time, sizeof(time), x->held_usec));
}

bool report_to_journal(const Report *x, const char *text)
{
    const ReplayResult *s = &x->result;
    JournalEntry e;

    journal_entry_begin(&e, JOURNAL_REPLAY_FINISHED, LOG_INFO);
    journal_entry_add(&e, "HEADSTART_STAGE", "%s", stage_to_string(x->stage));
    journal_entry_add(&e, "HEADSTART_POLICY", "%s", policy_to_string(x->policy));
    journal_entry_add(&e, "HEADSTART_OUTCOME", "%s", outcome_to_string(x->outcome));
    journal_entry_add(&e, "HEADSTART_DURATION_USEC", "%" PRIu64, x->duration_usec);
    journal_entry_add(&e, "HEADSTART_FILES", "%" PRIu64, s->n_opened);
    journal_entry_add(&e, "HEADSTART_DATA_BYTES", "%" PRIu64, s->data_bytes);
    journal_entry_add(&e, "HEADSTART_METADATA_BYTES", "%" PRIu64, s->metadata_bytes);
    if (!journal_take(&e, text))
        return false;
    if (x->hold_end == HOLD_END_DEADLINE || x->hold_end == HOLD_END_PACK)
        log_expired_hold(x);
    return true;
}

void report_start(Report *x)
{
    x->hold.from = x->hold.start = clock_now(CLOCK_MONOTONIC);
    x->start_realtime = clock_now(CLOCK_REALTIME);
    x->start_boottime = clock_now(CLOCK_BOOTTIME);
}

void report_hold_ended(Report *x, HoldEnd end)
{
    if (x->hold_end != HOLD_END_NONE)
        return;
    x->hold_end = end;
    x->held_usec = x->hold.held + clock_now(CLOCK_MONOTONIC) - x->hold.from;
}

/* Appends a name as a JSON string. Names are bytes and JSON is text: as everywhere in headstart,
 * "%" and bytes that are not printable ASCII are written as %XX. */
static void add_json_string(Text *t, const char *s)
{
    add(t, "\"");
    for (const unsigned char *c = (const unsigned char *)s; *c; c++)
        if (*c < 0x20 || *c >= 0x7f || *c == '%')
            add(t, "%%%02X", *c);
        else
            add(t, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    add(t, "\"");
}

char *report_to_json(const Report *x)
{
    const ReplayResult *s = &x->result;
    const char *separator = "";
    Text t = {0};

    add(&t, "{");
    if (x->pack) {
        add(&t, "\"pack\":");
        add_json_string(&t, x->pack);
        add(&t, ",\"checksum\":\"%016" PRIx64 "\",\"stage\":\"%s\",\"policy\":\"%s\",", x->checksum,
            stage_to_string(x->stage), policy_to_string(x->policy));
    }
    add(&t,
        "\"outcome\":\"%s\",\"start_realtime_usec\":%" PRIu64 ",\"start_boottime_usec\":%" PRIu64
        ",\"duration_usec\":%" PRIu64 ",\"resident\":%s",
        outcome_to_string(x->outcome), x->start_realtime, x->start_boottime, x->duration_usec,
        s->resident ? "true" : "false");
    if (x->reason != POLICY_REASON_UNKNOWN)
        add(&t, ",\"reason\":\"%s\"", policy_reason_to_string(x->reason));
    if (x->hold_end != HOLD_END_NONE)
        add(&t, ",\"held_usec\":%" PRIu64 ",\"hold_end\":\"%s\"", x->held_usec,
            hold_end_to_string(x->hold_end));
    add(&t,
        ",\"metadata_ranges\":%" PRIu64 ",\"metadata_bytes\":%" PRIu64 ",\"files\":%" PRIu64
        ",\"data_ranges\":%" PRIu64 ",\"data_bytes\":%" PRIu64 ",\"skipped\":{",
        s->n_metadata, s->metadata_bytes, s->n_opened, s->n_data, s->data_bytes);
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        if (s->n_skipped[i] > 0) {
            add(&t, "%s\"%s\":%" PRIu64, separator, replay_skip_to_string((ReplaySkip)i),
                s->n_skipped[i]);
            separator = ",";
        }
    add(&t, "}}");
    return finish(&t);
}

int report_save(const Report *x)
{
    _cleanup_free_ char *dir = NULL, *json = NULL, *text = NULL;
    char *slash;
    int r = 0;

    if (!x->status)
        return 0;
    dir = strdup(x->status);
    json = report_to_json(x);
    if (!dir || !json || asprintf(&text, "%s\n", json) < 0)
        return -ENOMEM;
    slash = strrchr(dir, '/');
    if (slash && slash > dir) {
        *slash = 0;
        r = make_directories(dir, 0755);
    }
    /* The report of a login would show when its user logged in and how much data that user has, so
     * only root may read it. Without a pack the stage is not known. */
    return r < 0 ? r
                 : output_file_write(x->status, text, strlen(text),
                                     x->pack && x->stage == STAGE_BOOT ? 0644 : 0600);
}

EarlierReplay report_read_earlier(const char *status, const Pack *p)
{
    _cleanup_free_ char *text = NULL;
    char checksum[64];
    size_t size;

    if (file_read_whole(AT_FDCWD, status, REPORT_SIZE_MAX, &text, &size) < 0)
        return EARLIER_REPLAY_NONE;
    /* Strings of the report have no unescaped quote, so a member can be found as text. */
    snprintf(checksum, sizeof(checksum), "\"checksum\":\"%016" PRIx64 "\"",
             le64toh(p->header->checksum));
    /* A replay of the policy `metadata` reads no data. */
    if (!strstr(text, checksum) || strstr(text, "\"policy\":\"metadata\""))
        return EARLIER_REPLAY_NONE;
    /* A replay that stopped because memory was short, and now waits for a mount, still says that it
     * runs. */
    if (strstr(text, "\"outcome\":\"running\""))
        return strstr(text, "\"stopped\":") ? EARLIER_REPLAY_NONE : EARLIER_REPLAY_RUNNING;
    /* What was not mounted or not begun was not read. */
    if (!strstr(text, "\"outcome\":\"done\"") || strstr(text, "\"unmounted\":") ||
        strstr(text, "\"device\":") || strstr(text, "\"stopped\":"))
        return EARLIER_REPLAY_NONE;
    return EARLIER_REPLAY_DONE;
}

static const PackFile *file_of(const Pack *p, const Operation *o)
{
    return &p->files[o->kind == OPERATION_DATA ? le32toh(p->data[o->index].file) : o->index];
}

char *operation_to_text(const Pack *p, const MountedTable *m, const Operation *o)
{
    const char *target = m->volumes[o->volume].target;
    const PackFile *f = file_of(p, o);
    uint64_t offset, length;
    Text t = {0};

    operation_range(p, o, &offset, &length);
    add(&t, "%-8s ", operation_kind_to_string(o->kind));
    if (operation_is_metadata(o)) {
        add(&t, "%" PRIu64 "+%" PRIu64 " ", offset, length);
        add_name(&t, target);
    } else if (o->kind == OPERATION_OPEN)
        add(&t, "#%" PRIu64, le64toh(f->inode));
    else {
        uint64_t physical = le64toh(p->data[o->index].physical);

        add(&t, "%" PRIu64 "+%" PRIu64, offset, length);
        if (physical != PACK_PHYSICAL_UNKNOWN)
            add(&t, " @%" PRIu64, physical);
    }
    if (!operation_is_metadata(o)) {
        add(&t, " ");
        add_name(&t, target[1] ? target : "");
        add(&t, "/");
        add_name(&t, pack_string(p, f->path));
    }
    return finish(&t);
}

char *operation_to_json(const Pack *p, const MountedTable *m, const Operation *o)
{
    const PackFile *f = file_of(p, o);
    uint64_t offset, length;
    Text t = {0};

    operation_range(p, o, &offset, &length);
    add(&t, "{\"operation\":\"%s\",\"filesystem\":", operation_kind_to_string(o->kind));
    add_json_string(&t, m->volumes[o->volume].target);
    if (!operation_is_metadata(o)) {
        add(&t, ",\"path\":");
        add_json_string(&t, pack_string(p, f->path));
        add(&t, ",\"inode\":%" PRIu64, le64toh(f->inode));
    }
    if (o->kind != OPERATION_OPEN)
        add(&t, ",\"offset\":%" PRIu64 ",\"length\":%" PRIu64, offset, length);
    if (o->kind == OPERATION_DATA && le64toh(p->data[o->index].physical) != PACK_PHYSICAL_UNKNOWN)
        add(&t, ",\"physical\":%" PRIu64, le64toh(p->data[o->index].physical));
    add(&t, "}");
    return finish(&t);
}
