/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart record: one stage, while a command runs or until a signal. */

#include "base/atomic-file.h"
#include "cli/capability.h"
#include "cli/cli-state.h"
#include "record/recorder.h"
#include "state/trace-store.h"
#include "trace/trace-json.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "config-paths.h"

enum {
    OPTION_STAGE = 1,
    OPTION_OUTPUT,
    OPTION_EXACT,
};

static const Option options[] = {
        {OPTION_STAGE, 0, "stage", "STAGE",
         "Stage that the trace belongs to: boot, login or\nsession [session]"},
        {OPTION_OUTPUT, 'o', "output", "FILE",
         "Write the trace to FILE, not to the state directory"},
        {OPTION_EXACT, 0, "exact", NULL, "Lower read-ahead to record exact ranges; slower"},
        {0},
};

typedef struct Recording {
    Context *c;
    Stage stage;
    const char *output; /* --output, or NULL */
    bool exact;
    int state_fd; /* the state directory, without --output */
    sd_event *event;
    Recorder *recorder;
    pid_t child;     /* 0: no command */
    int exit_status; /* of the command */
    int start_fd;    /* closing it starts the command */
    int failed_fd;   /* the child writes the errno of execve(2) to it */
} Recording;

static void recording_done(Recording *r)
{
    recorder_free(r->recorder);
    sd_event_unref(r->event);
    for (size_t i = 0; i < 3; i++) {
        int fd = i == 0 ? r->state_fd : i == 1 ? r->start_fd : r->failed_fd;

        if (fd >= 0)
            close(fd);
    }
}

/* --- the command ------------------------------------------------------------------------------ */

/* Executes the command when the other end of `start_fd` is closed. Never returns. */
static void __attribute__((noreturn)) run_child(char **argv, int start_fd, int failed_fd)
{
    sigset_t none;
    char byte;
    int error;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (read(start_fd, &byte, 1) != 0) /* the parent writes nothing */
        _exit(EXIT_FAILURE);
    execvp(argv[0], argv);
    error = errno;
    if (write(failed_fd, &error, sizeof(error)) < 0)
        _exit(EXIT_FAILURE);
    _exit(error == ENOENT ? 127 : 126);
}

static int on_child(sd_event_source *s, const siginfo_t *si, void *userdata)
{
    Recording *r = userdata;

    r->exit_status = si->si_code == CLD_EXITED ? si->si_status : 128 + si->si_status;
    r->child = 0;
    return sd_event_exit(r->event, 0);
}

/* Without a command a signal ends the recording. Otherwise it is forwarded to the command, unless
 * the terminal has sent it to both. */
static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata)
{
    Recording *r = userdata;

    if (r->child <= 0)
        return sd_event_exit(r->event, 0);
    if (si->ssi_code != SI_KERNEL)
        kill(r->child, (int)si->ssi_signo);
    return 0;
}

static int prepare_events(Recording *r)
{
    sigset_t set;
    int k;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    k = sd_event_new(&r->event);
    if (k >= 0)
        k = sd_event_add_signal(r->event, NULL, SIGINT, on_signal, r);
    if (k >= 0)
        k = sd_event_add_signal(r->event, NULL, SIGTERM, on_signal, r);
    return k;
}

/* Forks the command, which waits until the recording has begun. */
static int prepare_child(Recording *r, char **argv)
{
    int start[2], failed[2];

    if (pipe2(start, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(failed, O_CLOEXEC) < 0) {
        int error = errno;

        close(start[0]);
        close(start[1]);
        return -error;
    }
    fflush(stdout);
    r->child = fork();
    if (r->child == 0) {
        close(start[1]);
        run_child(argv, start[0], failed[1]);
    }
    int error = errno;
    close(start[0]);
    close(failed[1]);
    r->start_fd = start[1];
    r->failed_fd = failed[0];
    if (r->child < 0)
        return -error;
    return sd_event_add_child(r->event, NULL, r->child, WEXITED, on_child, r);
}

/* --- the recording ---------------------------------------------------------------------------- */

/* Reports an output that cannot be written before the recording begins. */
static int check_output(const Recording *r)
{
    _cleanup_free_ char *copy = NULL;

    if (!r->output)
        return 0;
    copy = strdup(r->output);
    if (!copy)
        return cli_error(ENOMEM, "%m");
    if (access(dirname(copy), W_OK) < 0)
        return cli_error(errno, "%s: %m", r->output);
    return 0;
}

static int open_recorder(Recording *r)
{
    static const int needed[] = {CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1};
    /* The user who names an output file decides which names may be written there. */
    RecorderOptions o = {
            .root = r->c->root, .exact = r->exact, .store = r->output ? NULL : r->c->state};
    _cleanup_free_ char *error = NULL;
    char missing[128];
    int k;

    if (capability_missing(needed, missing, sizeof(missing)))
        return cli_error(EPERM, "recording needs %s", missing);
    /* The original read-ahead is stored in the directory. Otherwise the directory is only needed to
     * see whether something was replayed. */
    if (r->exact && (k = make_directories(HEADSTART_RUN_DIR, 0755)) < 0)
        return cli_error(k, HEADSTART_RUN_DIR ": %m");
    if (access(HEADSTART_RUN_DIR, F_OK) == 0)
        o.run_dir = HEADSTART_RUN_DIR;
    k = recorder_new(&o, &r->recorder, &error);
    if (k < 0)
        return cli_error(k, "%s: %s", r->c->root, error ? error : strerror(-k));
    if (recorder_limits(r->recorder) && !r->c->quiet)
        cli_warning(0, "%s", recorder_limits(r->recorder));
    k = recorder_attach(r->recorder, r->event);
    return k < 0 ? cli_error(k, "cannot follow events: %m") : 0;
}

/* *ret: path of the trace; the caller frees it. */
static int write_trace(const Recording *r, const Trace *t, char **ret)
{
    _cleanup_free_ char *text = NULL, *path = NULL;
    size_t length;
    int k;

    if (r->output) {
        path = strdup(r->output);
        k = path ? trace_to_json(t, &text, &length) : -ENOMEM;
        if (k >= 0)
            k = output_file_write(r->output, text, length, 0600);
    } else
        k = trace_store(r->c->state, t, &path);
    if (k < 0)
        return cli_error(k, "cannot write the trace to %s: %m",
                         r->output ? r->output : r->c->state);
    *ret = TAKE_PTR(path);
    return 0;
}

static int print(const Recording *r, const Trace *t, const char *name)
{
    static const Column columns[] = {
            {NULL, "file", CELL_PATH},
            {NULL, "stage", CELL_STRING},
            {NULL, "duration_usec", CELL_TIMESPAN},
            {NULL, "n_accesses", CELL_COUNT},
            {NULL, "n_files", CELL_COUNT},
            {NULL, "resident_bytes", CELL_BYTES},
            {NULL, "metadata_bytes", CELL_BYTES},
            {NULL, "incomplete", CELL_BOOLEAN},
            {0},
    };
    char data[FORMAT_BYTES_MAX], metadata[FORMAT_BYTES_MAX], time[FORMAT_TIMESPAN_MAX];
    uint64_t data_bytes = 0, metadata_bytes = 0;
    _cleanup_free_ char *left_out = NULL;

    for (size_t i = 0; i < t->n_files; i++)
        data_bytes += range_set_total(&t->files[i].resident);
    for (size_t i = 0; i < t->n_volumes; i++)
        metadata_bytes += range_set_total(&t->volumes[i].metadata);

    if (r->c->json != JSON_OFF)
        return cli_print_json(r->c, columns, name, stage_to_string(t->stage), t->duration,
                              (uint64_t)t->n_accesses, (uint64_t)t->n_files, data_bytes,
                              metadata_bytes, (t->flags & TRACE_INCOMPLETE) != 0);
    left_out = trace_describe_left_out(t);
    if (left_out && !r->c->quiet)
        cli_warning(0, "left out of the trace, over the limits of users: %s", left_out);
    /* Standard output belongs to the command. */
    if (!r->c->quiet)
        fprintf(stderr,
                "headstart: recorded %s in %s: %zu accesses to %zu files, %s, and %s of metadata: "
                "%s%s\n",
                stage_to_string(t->stage), format_timespan(time, sizeof(time), t->duration),
                t->n_accesses, t->n_files, format_bytes(data, sizeof(data), data_bytes),
                format_bytes(metadata, sizeof(metadata), metadata_bytes), name,
                t->flags & TRACE_INCOMPLETE ? " (incomplete: events were lost)" : "");
    return 0;
}

static int record(Recording *r, char **command)
{
    _cleanup_free_ char *name = NULL;
    _cleanup_trace_ Trace *t = NULL;
    uint32_t uid = r->stage == STAGE_BOOT ? TRACE_NONE : (uint32_t)getuid();
    int k, error;

    k = recorder_begin_stage(r->recorder, r->stage, uid);
    if (k < 0)
        return cli_error(k, "cannot begin to record: %m");
    if (!*command && !r->c->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "Recording %s; Ctrl+C ends it.\n", stage_to_string(r->stage));
    if (r->start_fd >= 0) {
        close(r->start_fd);
        r->start_fd = -EBADF;
    }
    k = sd_event_loop(r->event);
    if (k < 0)
        return cli_error(k, "cannot record: %m");
    if (*command && read(r->failed_fd, &error, sizeof(error)) == sizeof(error)) {
        cli_error(error, "%s: %m", command[0]);
        return r->exit_status;
    }
    k = recorder_end_stage(r->recorder, &t);
    if (k < 0)
        return cli_error(k, "cannot make the trace: %m");
    k = write_trace(r, t, &name);
    if (k >= 0)
        k = print(r, t, name);
    return k < 0 ? k : r->exit_status;
}

/* Kills a command that still waits because the recording did not begin. */
static void drop_child(Recording *r)
{
    if (r->child > 0) {
        kill(r->child, SIGKILL);
        waitpid(r->child, NULL, 0);
    }
}

static int run(Context *c)
{
    _cleanup_(recording_done) Recording r = {.c = c,
                                             .stage = STAGE_SESSION,
                                             .state_fd = -EBADF,
                                             .start_fd = -EBADF,
                                             .failed_fd = -EBADF};
    const char *value;
    char **command;
    int k, n;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_STAGE:
            k = cli_parse_stage(c, value, &r.stage);
            if (k < 0)
                return k;
            break;
        case OPTION_OUTPUT:
            if (!*value)
                return cli_usage_error(c, "--output= needs a file");
            r.output = value;
            break;
        case OPTION_EXACT:
            r.exact = true;
            break;
        }
    if (k < 0)
        return k;
    command = cli_arguments(c, &n);

    k = check_output(&r);
    if (k >= 0 && !r.output)
        k = cli_state_open(c, true, &r.state_fd);
    if (k < 0)
        return k;
    k = prepare_events(&r);
    if (k < 0)
        return cli_error(k, "cannot set up the event loop: %m");
    k = open_recorder(&r);
    if (k < 0)
        return k;
    if (n > 0 && (k = prepare_child(&r, command)) < 0)
        cli_error(k, "cannot start %s: %m", command[0]);
    else
        k = record(&r, command);
    drop_child(&r);
    return k;
}

const Verb verb_record = {
        .name = "record",
        .arguments = "[-- COMMAND…]",
        .max_arguments = VERB_ANY,
        .summary = "Record what a command or the machine reads",
        .description =
                "Runs COMMAND and exits with its exit status. Without COMMAND, records until\n"
                "SIGINT or SIGTERM.",
        .options = options,
        .takes_command = true,
        .run = run,
};
