/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/directory.h"
#include "base/log.h"
#include "base/rooted.h"
#include "base/text.h"
#include "config-paths.h"
#include "state/device-store.h"
#include "state/refresh-request.h"
#include "state/rerecord.h"
#include "state/state.h"
#include "system/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* The free space below which the filesystem counts as full. A trace and a new model need less. */
#define STATE_FREE_MIN (16U << 20)
#define HARM_REMEDY    "none: headstart tries again after 90 days"

bool checks_is_disabled(const Context *c)
{
    _cleanup_close_ int mark = rooted_open(c->system_fd, HEADSTART_SYSCONF_DIR "/disabled", O_PATH);

    return mark >= 0;
}

static void check_switches(Checks *checks, const Context *c)
{
    if (kernel_command_line_has(c->system_fd, "headstart=0"))
        checks_add(checks, "switch", CHECK_PROBLEM, "nothing is recorded or replayed",
                   "remove headstart=0 from the kernel command line",
                   "headstart=0 is on the kernel command line");
    else if (checks_is_disabled(c))
        checks_add(checks, "switch", CHECK_PROBLEM, "nothing is recorded or replayed",
                   "headstart enable", "headstart is disabled");
    else
        checks_add(checks, "switch", CHECK_OK, NULL, NULL, "headstart is on");
}

/* Returns the number of files in the directory that were set aside. */
static size_t count_set_aside(int state_fd, const char *place)
{
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    size_t n = 0;

    if (directory_open(state_fd, place, O_NOFOLLOW, &dir) < 0)
        return 0;
    while ((e = directory_next(dir))) {
        const char *dot = strrchr(e->d_name, '.');

        n += dot && strcmp(dot, ".bad") == 0;
    }
    return n;
}

static void check_set_aside(Checks *checks, const Context *c, int state_fd)
{
    _cleanup_free_ char *remedy = NULL;
    size_t n_state = count_set_aside(state_fd, "."),
           n_traces = count_set_aside(state_fd, STATE_TRACES);

    if (n_state + n_traces == 0)
        return;
    if (asprintf(&remedy, "journalctl -t headstartd -t headstart, then rm%s%s%s%s%s%s",
                 n_state > 0 ? " " : "", n_state > 0 ? c->state : "", n_state > 0 ? "/*.bad" : "",
                 n_traces > 0 ? " " : "", n_traces > 0 ? c->state : "",
                 n_traces > 0 ? "/" STATE_TRACES "/*.bad" : "") < 0) {
        checks->failed = true;
        return;
    }
    checks_add(checks, "set-aside", CHECK_NOTE, "headstart does not use these files any more",
               remedy, "%zu file%s below %s with a name that ends in .bad", n_state + n_traces,
               text_plural_s(n_state + n_traces), c->state);
}

static void check_harm(Checks *checks, const Benefits *b)
{
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        if (benefits_is_kept_on(b, s))
            checks_add(
                    checks, "benefit", CHECK_PROBLEM, "it takes longer than without headstart",
                    s == STAGE_BOOT || b->stages[s].automatic
                            ? "remove BootPolicy= from the file that 'headstart config' names, then headstart plan"
                            : "remove LoginPolicy= from the file that 'headstart config' names, then headstart plan",
                    "replay makes each %s at least %.0f %% longer, and is still on",
                    stage_to_string(s), -100 * b->stages[s].evidence.saved_high);
        else if (b->stages[s].harmful)
            checks_add(checks, "benefit", CHECK_NOTE, "it is not replayed", HARM_REMEDY,
                       "replay made each %s at least %.0f %% longer and is switched off",
                       stage_to_string(s), -100 * b->stages[s].evidence.saved_high);
}

static void check_directory(Checks *checks, const Context *c, int state_fd)
{
    _cleanup_free_ char *chmod = NULL, *remount = NULL, *usage = NULL;
    struct statvfs fs = {0};
    struct stat st;

    if (asprintf(&chmod, "chmod 0700 %s", c->state) < 0 ||
        asprintf(&remount, "mount -o remount,rw \"$(findmnt -no TARGET -T %s)\"", c->state) < 0 ||
        asprintf(
                &usage,
                "free some space; to find what uses it: du -xh \"$(findmnt -no TARGET -T %s)\" | sort -h",
                c->state) < 0) {
        checks->failed = true;
        return;
    }
    if (state_fd < 0) {
        checks_add(checks, "state", CHECK_NOTE, "nothing was recorded yet",
                   "reboot and log in once", "%s does not exist", c->state);
        return;
    }
    if (fstat(state_fd, &st) == 0 && (st.st_mode & 077))
        checks_add(checks, "state", CHECK_PROBLEM, "users see what others opened", chmod,
                   "%s is open to other users", c->state);
    if (fstatvfs(state_fd, &fs) == 0 && (fs.f_flag & ST_RDONLY))
        checks_add(checks, "state", CHECK_PROBLEM, "nothing can be recorded or learned", remount,
                   "%s is read-only", c->state);
    else if (fs.f_frsize > 0 && fs.f_bavail * fs.f_frsize < STATE_FREE_MIN)
        checks_add(checks, "state", CHECK_PROBLEM, "nothing can be recorded or learned", usage,
                   "the filesystem of %s has less than 16 MiB of free space", c->state);
    if (refresh_request_read(state_fd).inode != 0)
        checks_add(checks, "packages", CHECK_NOTE, "replay skips files that were replaced",
                   "headstart refresh", "packages have changed since the packs were planned");
}

void checks_add_state(Checks *checks, const Context *c, int state_fd, const StagePacks *packs,
                      const Benefits *b)
{
    check_switches(checks, c);
    check_directory(checks, c, state_fd);
    if (state_fd < 0)
        return;
    checks_add_packs(checks, c, state_fd, packs);
    check_set_aside(checks, c, state_fd);
    check_harm(checks, b);
}

void checks_add_history(Checks *checks, const Context *c, int state_fd)
{
    static const struct {
        const char *name, *cost;
    } files[] = {
            {HISTORY_FILE, "what replay saves is not known, and no pack is planned"},
            {HISTORY_OLD_FILE, "what replay saves is not known, and no pack is planned"},
            {LAUNCHES_FILE, "what launch sets save is not known, and no pack is planned"},
            {LAUNCHES_OLD_FILE, "what launch sets save is not known, and no pack is planned"},
    };

    for (size_t i = 0; i < ELEMENTSOF(files); i++) {
        _cleanup_free_ char *remedy = NULL;
        int r = history_check_file(state_fd, files[i].name);

        if (r >= 0)
            continue;
        if (r == -ENOMEM || asprintf(&remedy, "mv %s/%s %s/%s.bad", c->state, files[i].name,
                                     c->state, files[i].name) < 0) {
            checks->failed = true;
            return;
        }
        checks_add(checks, "history", CHECK_PROBLEM, files[i].cost, remedy,
                   "%s/%s cannot be read: %s", c->state, files[i].name, error_text(r));
    }
}

static void add_bad_model(Checks *checks, const Context *c, const char *reason)
{
    checks_add(checks, "model", CHECK_PROBLEM, "nothing can be planned", "headstart learn",
               "%s/" STATE_MODEL " cannot be used: %s", c->state, reason);
}

void checks_add_model(Checks *checks, const Context *c, int state_fd, uint64_t *ret_n_learned)
{
    int r = state_peek_model(state_fd, ret_n_learned);

    if (r < 0 && r != -ENOENT)
        add_bad_model(checks, c, r == -ENODATA ? "not a headstart model" : error_text(r));
}

void checks_add_bad_devices(Checks *checks, const Context *c, const char *reason)
{
    checks_add(checks, "devices", CHECK_NOTE, "the devices are measured again", "headstart plan",
               "%s/" STATE_DEVICES " cannot be used: %s", c->state, reason);
}

/* --- slower checks ---------------------------------------------------------------------------- */

static void check_model(Checks *checks, const Context *c, int state_fd)
{
    _cleanup_model_ Model *m = NULL;
    _cleanup_free_ char *error = NULL;
    int r = state_load_model(state_fd, &m, &error);

    if (r >= 0)
        checks_add(checks, "model", CHECK_OK, NULL, NULL, "learned traces: %zu", m->n_learned);
    else if (r != -ENOENT)
        add_bad_model(checks, c, error ? error : error_text(r));
}

static void check_devices(Checks *checks, const Context *c, int state_fd)
{
    _cleanup_device_store_ DeviceStore store = {0};
    _cleanup_free_ char *error = NULL;
    int r = state_load_devices(state_fd, &store, &error);

    if (r < 0)
        checks_add_bad_devices(checks, c, error ? error : error_text(r));
}

static void check_control(Checks *checks, const Context *c, const Benefits *b)
{
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        char text[BENEFIT_TEXT_MAX];
        bool off = c->config.control_interval == 0 && !b->stages[s].effect.known;

        if (b->stages[s].harmful) /* check_harm() has said so */
            continue;
        checks_add(checks, "benefit", off ? CHECK_NOTE : CHECK_OK,
                   off ? "the benefit stays unknown" : NULL,
                   off ? "headstart measure, or ControlInterval=auto in headstart.conf" : NULL,
                   "%s: %s%s", stage_to_string(s), benefits_to_text(b, s, text),
                   off ? ", and there are no control sessions" : "");
    }
}

/* Names the stages that are not replayed until they were recorded again. */
static void check_requests(Checks *checks, const Context *c, int state_fd)
{
    for (Stage s = 0; s < _STAGE_MAX; s++) {
        _cleanup_free_ char *remedy = NULL;
        char name[RERECORD_NAME_MAX];

        if (faccessat(state_fd, rerecord_name(name, s), F_OK, 0) < 0)
            continue;
        if (asprintf(&remedy, "%s, or rm %s/%s", s == STAGE_BOOT ? "reboot" : "log in once",
                     c->state, name) < 0) {
            checks->failed = true;
            return;
        }
        checks_add(checks, "request", CHECK_NOTE, "the stage is not replayed until then", remedy,
                   "the next %s will be recorded without replay, as 'headstart measure' or "
                   "'headstart rerecord' has requested",
                   stage_to_string(s));
    }
}

void checks_add_thorough(Checks *checks, const Context *c, int state_fd, const StagePacks *packs,
                         const Benefits *b, Progress *progress)
{
    if (state_fd < 0)
        return;
    check_model(checks, c, state_fd);
    check_devices(checks, c, state_fd);
    checks_add_pack_files(checks, c, state_fd, packs, progress);
    checks_add_history(checks, c, state_fd);
    if (b->history.n_bad > 0)
        checks_add(checks, "history", CHECK_NOTE, "these sessions are not compared",
                   "none: headstart skips the lines",
                   "%zu line%s of %s/" HISTORY_FILE " cannot be used", b->history.n_bad,
                   text_plural_s(b->history.n_bad), c->state);
    check_control(checks, c, b);
    check_requests(checks, c, state_fd);
}
