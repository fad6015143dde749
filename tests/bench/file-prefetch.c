/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* file-prefetch PREDICTOR MINIMUM [JUMP]: predicts files while they are opened, and reads them
 * ahead, as the kernels of Kroeger and Long did (USENIX 2001). It links the predictors of
 * src/evaluate and the fanotify of src/observe. MINIMUM is also the `partition_threshold` of EPCM,
 * and JUMP is its `partition_jump` (evaluate/predictor.h).
 *
 * A predictor may name many files at once. They are read as headstart replays a pack on a disk that
 * seeks: one thread opens all files that wait, in the order of their inodes, and then reads them in
 * the order of their places. Its I/O class is real-time. Otherwise the scheduler lets the thread
 * and the observed programs take turns, and each turn costs two seeks.
 *
 * Commands on standard input, one per line:
 *
 *     begin MOUNT    observes the filesystem; a run begins
 *     on, off        reads ahead what is predicted with a probability of at least MINIMUM, or only
 *                    learns
 *     end            forgets the filesystem, so that it can be unmounted, and prints
 *                    "opens N requests N used N": opens by other processes, files that
 *                    were requested, and requested files that were opened later
 *
 * Each command is answered by one line. What was learned stays until standard input ends. */

#include "base/clock.h"
#include "evaluate/predictor.h"
#include "observe/fanotify.h"
#include "system/thread.h"
#include "volume/extents.h"

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 0
#include <uthash.h>

#define QUEUE_MAX   4096U /* requests that wait; further ones are dropped */
#define EVENTS_SIZE 65536
#define READ_MAX    (16U << 20) /* of one file */
#define BUFFER_SIZE (1U << 20)

typedef enum Step {
    STEP_OPEN, /* reads the inode, and finds the place of the data */
    STEP_READ,
    _STEP_MAX,
} Step;

/* path below the mount -> its number */
typedef struct File {
    UT_hash_handle hh;
    char *path;
    uint32_t item;
    uint64_t places[_STEP_MAX]; /* the number of its inode; the device offset of its first byte */
    bool requested, opened;     /* in this run */
} File;

/* The requests that wait for a step */
typedef struct Waiting {
    uint32_t items[QUEUE_MAX];
    size_t n;
    uint64_t place; /* of the last one that was taken */
} Waiting;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled, idle;
    Waiting waiting[_STEP_MAX];
    int root_fd; /* -EBADF between runs */
    bool active; /* the thread uses root_fd */
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER,
           .filled = PTHREAD_COND_INITIALIZER,
           .idle = PTHREAD_COND_INITIALIZER,
           .root_fd = -EBADF};

static Predictor *predictor;
static double minimum;
static bool predicting;
static File *by_path;
static File **files; /* item -> file */
static uint32_t n_files;
static char mount_path[PATH_MAX];
static int group_fd = -EBADF;
static uint64_t n_opens, n_requests, n_used;

static File *intern(const char *path)
{
    File *f;

    HASH_FIND_STR(by_path, path, f);
    if (f)
        return f;
    f = calloc(1, sizeof(*f));
    files = reallocarray(files, n_files + 1, sizeof(*files));
    if (!f || !files || !(f->path = strdup(path)) || n_files == PREDICTOR_ITEMS_MAX)
        errx(EXIT_FAILURE, "too many files");
    f->item = n_files;
    files[n_files++] = f;
    HASH_ADD_KEYPTR(hh, by_path, f->path, strlen(f->path), f);
    return f;
}

/* --- reading ahead ---------------------------------------------------------------------------- */

static uint64_t data_place(int fd)
{
    static _Thread_local ExtentList extents;

    return extents_read(fd, 1, &extents) >= 0 && extents.n > 0 ? extents.extents[0].physical : 0;
}

/* Executes one step for a file. Returns the place of its data, or 0 if it is not known. */
static uint64_t visit(int root_fd, const char *path, Step step)
{
    static char buffer[BUFFER_SIZE];
    _cleanup_close_ int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOATIME | O_NOFOLLOW);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (step == STEP_OPEN)
        return data_place(fd);
    for (uint64_t sum = 0; sum < READ_MAX && (n = read(fd, buffer, sizeof(buffer))) > 0;)
        sum += (uint64_t)n;
    return 0;
}

/* Takes the next request: the order is upwards on the device, and then from the beginning again. */
static File *take_request(Step step)
{
    Waiting *w = &queue.waiting[step];
    size_t best = 0;
    File *f;

    for (size_t i = 1; i < w->n; i++)
        if (files[w->items[i]]->places[step] - w->place <
            files[w->items[best]]->places[step] - w->place)
            best = i;
    f = files[w->items[best]];
    w->items[best] = w->items[--w->n];
    w->place = f->places[step];
    return f;
}

static void add_request(File *f, Step step)
{
    Waiting *w = &queue.waiting[step];

    w->items[w->n++] = f->item;
}

static size_t n_waiting(void)
{
    return queue.waiting[STEP_OPEN].n + queue.waiting[STEP_READ].n;
}

static void *reader(void *arg)
{
    thread_set_io_class(IO_CLASS_REALTIME);
    pthread_mutex_lock(&queue.mutex);
    for (;;) {
        Step step;
        uint64_t place;
        File *f;

        while (n_waiting() == 0)
            pthread_cond_wait(&queue.filled, &queue.mutex);
        step = queue.waiting[STEP_OPEN].n > 0 ? STEP_OPEN : STEP_READ;
        f = take_request(step);
        queue.active = true;
        pthread_mutex_unlock(&queue.mutex);
        place = visit(queue.root_fd, f->path, step);
        pthread_mutex_lock(&queue.mutex);
        queue.active = false;
        if (step == STEP_OPEN && queue.root_fd >= 0) {
            f->places[STEP_READ] = place;
            add_request(f, STEP_READ);
        }
        pthread_cond_signal(&queue.idle);
    }
    return arg;
}

static void request(File *f)
{
    if (f->requested || f->opened || n_waiting() + queue.active >= QUEUE_MAX)
        return;
    f->requested = true;
    n_requests++;
    add_request(f, STEP_OPEN);
    pthread_cond_signal(&queue.filled);
}

/* --- observing -------------------------------------------------------------------------------- */

static void predict(usec_t now)
{
    static Guesses guesses;

    if (predictor_predict(predictor, now, USEC_INFINITY, &guesses) < 0)
        errx(EXIT_FAILURE, "cannot predict");
    guesses_sort(&guesses);
    for (size_t i = 0; i < guesses.n && guesses.guesses[i].probability >= minimum; i++)
        request(files[guesses.guesses[i].item]);
}

static void on_open(int fd)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);
    char link[64], path[PATH_MAX];
    size_t prefix = strlen(mount_path);
    struct stat st;
    ssize_t n;
    File *f;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    path[n] = 0;
    if (strncmp(path, mount_path, prefix) != 0 || path[prefix] != '/')
        return;
    n_opens++;
    pthread_mutex_lock(&queue.mutex);
    f = intern(path + prefix + 1);
    if (f->requested && !f->opened)
        n_used++;
    f->opened = true;
    f->places[STEP_OPEN] = st.st_ino;
    if (predictor_observe(predictor, &(PredictorEvent){.at = now,
                                                       .user = UID_INVALID,
                                                       .item = f->item,
                                                       .kind = PREDICTOR_ACCESS}) < 0)
        errx(EXIT_FAILURE, "cannot learn");
    if (predicting)
        predict(now);
    pthread_mutex_unlock(&queue.mutex);
}

/* Handles the events that are queued. */
static void drain(void)
{
    static _Alignas(struct fanotify_event_metadata) char buffer[EVENTS_SIZE];
    ssize_t n;

    while ((n = read(group_fd, buffer, sizeof(buffer))) > 0) {
        const struct fanotify_event_metadata *e = (const void *)buffer;

        for (; FAN_EVENT_OK(e, n); e = FAN_EVENT_NEXT(e, n)) {
            if (e->mask & FAN_Q_OVERFLOW)
                errx(EXIT_FAILURE, "the queue of events has overflowed");
            if (e->fd < 0)
                continue;
            if (e->pid != getpid())
                on_open(e->fd);
            close(e->fd);
        }
    }
}

/* --- commands --------------------------------------------------------------------------------- */

static void begin(const char *mount)
{
    int r;

    group_fd = fanotify_open_group(true, true);
    r = group_fd < 0 ? group_fd : fanotify_mark_filesystem(group_fd, mount);
    queue.root_fd = open(mount, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (r < 0 || queue.root_fd < 0 || !realpath(mount, mount_path))
        errx(EXIT_FAILURE, "%s: cannot be observed", mount);
    for (uint32_t i = 0; i < n_files; i++)
        files[i]->requested = files[i]->opened = false;
    n_opens = n_requests = n_used = 0;
    if (predictor_begin(predictor, clock_now(CLOCK_MONOTONIC), UID_INVALID) < 0)
        errx(EXIT_FAILURE, "cannot begin");
    puts("ready");
}

static void end(void)
{
    drain();
    pthread_mutex_lock(&queue.mutex);
    for (Step step = 0; step < _STEP_MAX; step++)
        queue.waiting[step].n = 0;
    while (queue.active)
        pthread_cond_wait(&queue.idle, &queue.mutex);
    queue.waiting[STEP_READ].n = 0;
    close(queue.root_fd);
    queue.root_fd = -EBADF;
    pthread_mutex_unlock(&queue.mutex);
    close(group_fd);
    group_fd = -EBADF;
    (void)predictor_end(predictor, clock_now(CLOCK_MONOTONIC));
    printf("opens %" PRIu64 " requests %" PRIu64 " used %" PRIu64 "\n", n_opens, n_requests,
           n_used);
}

static void execute(char *line)
{
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "begin ", 6) == 0 && group_fd < 0)
        begin(line + 6);
    else if (strcmp(line, "end") == 0 && group_fd >= 0)
        end();
    else if (strcmp(line, "on") == 0 || strcmp(line, "off") == 0) {
        predicting = strcmp(line, "on") == 0;
        puts("ready");
    } else
        errx(EXIT_FAILURE, "%s: no such command here", line);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    PredictorParameters parameters;
    char line[PATH_MAX + 16];
    pthread_t thread;

    if (argc < 3 || argc > 4 || sscanf(argv[2], "%lf", &minimum) != 1 || minimum <= 0)
        errx(2, "needs PREDICTOR MINIMUM [JUMP]");
    if (predictor_parameters_init(&parameters, argv[1]) < 0)
        errx(2, "%s: no such predictor", argv[1]);
    if (argc == 4 && sscanf(argv[3], "%u", &parameters.partition_jump) != 1)
        errx(2, "%s: not a number", argv[3]);
    if (strcmp(argv[1], "epcm") == 0)
        parameters.partition_threshold = minimum;
    if (predictor_new(argv[1], &parameters, 1, &predictor) < 0)
        errx(2, "%s: cannot be made with these parameters", argv[1]);
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see what was not read yet */
    if (pthread_create(&thread, NULL, reader, NULL) != 0)
        errx(EXIT_FAILURE, "cannot start a thread");
    for (;;) {
        struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {group_fd, POLLIN, 0}};

        if (poll(fds, 2, -1) < 0)
            err(EXIT_FAILURE, "poll");
        if (fds[1].revents & POLLIN)
            drain();
        if (fds[0].revents == 0)
            continue;
        if (!fgets(line, sizeof(line), stdin))
            return 0;
        execute(line);
    }
}
