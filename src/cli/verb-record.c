/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart record: records one stage, while a command runs or until a signal comes. */

#include "base/atomic-file.h"
#include "base/log.h"
#include "boot/read-ahead.h"
#include "cli/capability.h"
#include "command/cli-state.h"
#include "command/progress.h"
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
    int state_fd; /* the state directory; -EBADF with --output */
    sd_event *event;
    Recorder *recorder;
    pid_t child;     /* 0: no command */
    int exit_status; /* of the command */
    int start_fd;    /* closing it starts the command */
    int failed_fd;   /* the child writes the errno of execve(2) to it */
} Recording;

static void recording_done(Recording *x)
{
    recorder_free(x->recorder);
    sd_event_unref(x->event);
    for (size_t i = 0; i < 3; i++) {
        int fd = i == 0 ? x->state_fd : i == 1 ? x->start_fd : x->failed_fd;

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
    Recording *x = userdata;

    x->exit_status = si->si_code == CLD_EXITED ? si->si_status : 128 + si->si_status;
    x->child = 0;
    return sd_event_exit(x->event, 0);
}

/* Without a command a signal ends the recording. With a command, the signal is forwarded to the
 * command, unless the terminal has sent the signal to both processes. */
static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata)
{
    Recording *x = userdata;

    if (x->child <= 0)
        return sd_event_exit(x->event, 0);
    if (si->ssi_code != SI_KERNEL)
        kill(x->child, (int)si->ssi_signo);
    return 0;
}

static int prepare_events(Recording *x)
{
    sigset_t set;
    int r;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    r = sd_event_new(&x->event);
    if (r >= 0)
        r = sd_event_add_signal(x->event, NULL, SIGINT, on_signal, x);
    if (r >= 0)
        r = sd_event_add_signal(x->event, NULL, SIGTERM, on_signal, x);
    return r;
}

/* Forks the command, which waits until the recording has begun. */
static int prepare_child(Recording *x, char **argv)
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
    x->child = fork();
    if (x->child == 0) {
        close(start[1]);
        run_child(argv, start[0], failed[1]);
    }
    int error = errno;
    close(start[0]);
    close(failed[1]);
    x->start_fd = start[1];
    x->failed_fd = failed[0];
    if (x->child < 0)
        return -error;
    return sd_event_add_child(x->event, NULL, x->child, WEXITED, on_child, x);
}

/* --- the recording ---------------------------------------------------------------------------- */

/* Checks, before the recording begins, whether the output can be written. Reports an error. */
static int check_output(const Recording *x)
{
    _cleanup_free_ char *copy = NULL;

    if (!x->output)
        return 0;
    copy = strdup(x->output);
    if (!copy)
        return cli_error(ENOMEM, "%m");
    if (access(dirname(copy), W_OK) < 0)
        return cli_error(errno, "%s: %m", x->output);
    return 0;
}

static int open_recorder(Recording *x)
{
    static const int needed[] = {CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1};
    /* With an output file, `store` is NULL, and the trace may contain the names of all files: the
     * user has chosen where they are written. */
    RecorderOptions o = {.root = x->c->root,
                         .exact_kb = x->exact ? READ_AHEAD_EXACT_KB : 0,
                         .store = x->output ? NULL : x->c->state};
    _cleanup_free_ char *error = NULL;
    char missing[128];
    int r;

    if (capability_missing(needed, missing, sizeof(missing)))
        return cli_error(EPERM, "recording needs %s", missing);
    /* With --exact, the original read-ahead setting is stored in this directory, so it must exist.
     * Without --exact, the directory only shows whether something was replayed. */
    if (x->exact && (r = make_directories(HEADSTART_RUN_DIR, 0755)) < 0)
        return cli_error(r, HEADSTART_RUN_DIR ": %m");
    if (access(HEADSTART_RUN_DIR, F_OK) == 0)
        o.run_dir = HEADSTART_RUN_DIR;
    r = recorder_new(&o, &x->recorder, &error);
    if (r < 0)
        return cli_error(r, "%s: %s", x->c->root, error ? error : error_text(r));
    if (recorder_limits(x->recorder) && !x->c->quiet)
        cli_warning(0, "%s", recorder_limits(x->recorder));
    r = recorder_attach(x->recorder, x->event);
    return r < 0 ? cli_error(r, "cannot follow events: %m") : 0;
}

/* Writes the trace. *ret becomes its path; the caller frees it. */
static int write_trace(const Recording *x, const Trace *t, char **ret)
{
    _cleanup_free_ char *text = NULL, *path = NULL;
    size_t length;
    int r;

    if (x->output) {
        path = strdup(x->output);
        r = path ? trace_to_json(t, &text, &length) : -ENOMEM;
        if (r >= 0)
            r = output_file_write(x->output, text, length, 0600);
    } else
        r = trace_store(x->c->state, t, &path);
    if (r < 0)
        return cli_error(r, "cannot write the trace to %s: %m",
                         x->output ? x->output : x->c->state);
    *ret = TAKE_PTR(path);
    return 0;
}

static int print(const Recording *x, const Trace *t, const char *name)
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

    if (x->c->json != JSON_OFF)
        return cli_print_json(x->c, columns, name, stage_to_string(t->stage), t->duration,
                              (uint64_t)t->n_accesses, (uint64_t)t->n_files, data_bytes,
                              metadata_bytes, (t->flags & TRACE_INCOMPLETE) != 0);
    left_out = trace_describe_left_out(t);
    if (left_out && !x->c->quiet)
        cli_warning(0, "left out of the trace, because users exceeded their limits: %s", left_out);
    /* Standard output belongs to the command. */
    if (!x->c->quiet)
        fprintf(stderr,
                "headstart: recorded %s in %s: %zu accesses to %zu files, %s, and %s of metadata: "
                "%s%s\n",
                stage_to_string(t->stage), format_timespan(time, sizeof(time), t->duration),
                t->n_accesses, t->n_files, format_bytes(data, sizeof(data), data_bytes),
                format_bytes(metadata, sizeof(metadata), metadata_bytes), name,
                t->flags & TRACE_INCOMPLETE ? " (incomplete: events were lost)" : "");
    return 0;
}

static int record(Recording *x, char **command)
{
    _cleanup_free_ char *name = NULL;
    _cleanup_trace_ Trace *t = NULL;
    uint32_t uid = x->stage == STAGE_BOOT ? TRACE_NONE : (uint32_t)getuid();
    Progress progress;
    int k, error;

    k = recorder_begin_stage(x->recorder, x->stage, uid);
    if (k < 0)
        return cli_error(k, "cannot begin to record: %m");
    if (!*command && !x->c->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "Recording %s; Ctrl+C ends it.\n", stage_to_string(x->stage));
    if (x->start_fd >= 0) {
        close(x->start_fd);
        x->start_fd = -EBADF;
    }
    /* The terminal belongs to the command, if there is one. */
    progress = progress_start("Recording", x->c->quiet || *command);
    k = sd_event_loop(x->event);
    progress_done(&progress);
    if (k < 0)
        return cli_error(k, "cannot record: %m");
    if (*command && read(x->failed_fd, &error, sizeof(error)) == sizeof(error)) {
        cli_error(error, "%s: %m", command[0]);
        return x->exit_status;
    }
    progress = progress_start("Making the trace", x->c->quiet);
    k = recorder_end_stage(x->recorder, &t);
    progress_done(&progress);
    if (k < 0)
        return cli_error(k, "cannot make the trace: %m");
    k = write_trace(x, t, &name);
    if (k >= 0)
        k = print(x, t, name);
    return k < 0 ? k : x->exit_status;
}

/* Kills a command that still waits because the recording did not begin. */
static void drop_child(Recording *x)
{
    if (x->child > 0) {
        kill(x->child, SIGKILL);
        waitpid(x->child, NULL, 0);
    }
}

static int run(Context *c)
{
    _cleanup_(recording_done) Recording x = {.c = c,
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
            k = cli_parse_stage(c, value, &x.stage);
            if (k < 0)
                return k;
            break;
        case OPTION_OUTPUT:
            if (!*value)
                return cli_usage_error(c, "--output= needs a file");
            x.output = value;
            break;
        case OPTION_EXACT:
            x.exact = true;
            break;
        }
    if (k < 0)
        return k;
    command = cli_arguments(c, &n);

    k = check_output(&x);
    if (k >= 0 && !x.output)
        k = cli_state_open(c, true, &x.state_fd);
    if (k < 0)
        return k;
    k = prepare_events(&x);
    if (k < 0)
        return cli_error(k, "cannot set up the event loop: %m");
    k = open_recorder(&x);
    if (k < 0)
        return k;
    if (n > 0 && (k = prepare_child(&x, command)) < 0)
        cli_error(k, "cannot start %s: %m", command[0]);
    else
        k = record(&x, command);
    drop_child(&x);
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
