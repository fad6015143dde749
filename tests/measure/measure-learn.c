/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures what two commands cost after LEARNED traces have been learned: `headstart learn` of one
 * more trace, and the part of `headstart plan` that reads the model and predicts. Prints the CPU
 * seconds of each step, and the peak of resident memory up to its end.
 *
 *     measure-learn [LEARNED [FILES APPLICATIONS ACCESSES]]   default 16 8000 150 20000
 *     measure-learn --trace [FILES APPLICATIONS ACCESSES]     makes and writes one trace only */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "model/model.h"
#include "trace/trace-json.h"
#include "util/synthetic.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define SUCCEED(call)                                          \
    do {                                                       \
        int _r = (call);                                       \
        if (_r < 0) {                                          \
            fprintf(stderr, "%s: %s\n", #call, strerror(-_r)); \
            exit(EXIT_FAILURE);                                \
        }                                                      \
    } while (0)

static usec_t last_cpu;

static void lap(const char *what)
{
    usec_t now = clock_now(CLOCK_PROCESS_CPUTIME_ID);
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    printf("%-28s %8.4f s CPU   %6.1f MiB peak\n", what, (double)(now - last_cpu) / 1e6,
           (double)u.ru_maxrss / 1024);
    last_cpu = now;
}

static usec_t now_after(const Trace *t)
{
    return t->start_realtime + USEC_PER_HOUR;
}

/* Writes a model of the learned traces, and one further trace. Runs in a child process, so that its
 * memory does not count. */
static void prepare(int dir, const SyntheticParameters *base, unsigned learned)
{
    _cleanup_model_ Model *m = model_new(DECAYED_SUM_HALFLIFE_DEFAULT);

    for (unsigned i = 0; i <= learned; i++) {
        _cleanup_free_ char *text = NULL;
        SyntheticParameters p = *base;
        _cleanup_trace_ Trace *t = NULL;
        size_t size;

        p.session = i;
        p.start_realtime += i * 24 * USEC_PER_HOUR;
        SUCCEED(synthetic_trace(&p, &t));
        if (i < learned) {
            SUCCEED(model_learn(&m, t, now_after(t)));
            SUCCEED(model_prune(&m, 0.01));
            continue;
        }
        SUCCEED(trace_to_json(t, &text, &size));
        SUCCEED(atomic_file_write(dir, "trace.json", text, size, 0600));
        free(text);
        SUCCEED(model_to_json(m, &text, &size));
        SUCCEED(atomic_file_write(dir, "model.json", text, size, 0600));
    }
}

static void measure(int dir)
{
    _cleanup_free_ char *trace_text = NULL, *model_text = NULL, *out = NULL, *error = NULL;
    _cleanup_model_ Model *m = NULL;
    _cleanup_trace_ Trace *t = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    size_t trace_size, model_size, out_size;
    usec_t begin;

    lap("(start)");
    begin = last_cpu;
    SUCCEED(file_read_whole(dir, "model.json", MODEL_JSON_SIZE_MAX, &model_text, &model_size));
    SUCCEED(model_from_json(model_text, model_size, &m, &error));
    free(TAKE_PTR(model_text));
    lap("read model");
    SUCCEED(file_read_whole(dir, "trace.json", TRACE_JSON_SIZE_MAX, &trace_text, &trace_size));
    SUCCEED(trace_from_json(trace_text, trace_size, &t, &error));
    free(TAKE_PTR(trace_text));
    lap("read trace");
    SUCCEED(model_learn(&m, t, now_after(t)));
    t = trace_free(t);
    lap("learn");
    SUCCEED(model_prune(&m, 0.01));
    lap("prune");
    SUCCEED(model_to_json(m, &out, &out_size));
    lap("write model");
    m = model_free(m);
    printf("%-28s %8.4f s CPU\n", "= headstart learn", (double)(last_cpu - begin) / 1e6);
    SUCCEED(model_from_json(out, out_size, &m, &error));
    lap("read model again");
    SUCCEED(model_predict_stage(m, STAGE_LOGIN, UID_INVALID, &p));
    lap("predict");
    printf("%-28s %8.4f s CPU\n", "= both", (double)(last_cpu - begin) / 1e6);
    printf("trace %.2f MB, model %.2f MB, %zu files, %zu uses, %zu predicted\n",
           (double)trace_size / 1e6, (double)out_size / 1e6, m->n_files, m->stages[0].n_uses,
           p->n_files);
}

static void measure_trace(const SyntheticParameters *p)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_trace_ Trace *t = NULL;
    size_t size;

    lap("(start)");
    SUCCEED(synthetic_trace(p, &t));
    lap("make trace");
    SUCCEED(trace_to_json(t, &text, &size));
    lap("write trace");
    printf("%zu accesses, %zu files, %zu paths: %.2f MB\n", t->n_accesses, t->n_files, t->n_paths,
           (double)size / 1e6);
}

int main(int argc, char **argv)
{
    SyntheticParameters p = synthetic_login(0);
    bool trace_only = argc > 1 && strcmp(argv[1], "--trace") == 0;
    unsigned learned = argc > 1 && !trace_only ? (unsigned)strtoul(argv[1], NULL, 10) : 16;
    char template[] = "/tmp/measure-learn.XXXXXX";
    _cleanup_close_ int dir = -EBADF;
    int status = 0;
    pid_t child;

    if (argc > 4) {
        p.n_files = strtoul(argv[2], NULL, 10);
        p.n_applications = strtoul(argv[3], NULL, 10);
        p.n_accesses = strtoul(argv[4], NULL, 10);
    }
    if (trace_only) {
        measure_trace(&p);
        return EXIT_SUCCESS;
    }
    if (!mkdtemp(template) || (dir = open(template, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        perror(template);
        return EXIT_FAILURE;
    }
    child = fork();
    if (child == 0) {
        prepare(dir, &p, learned);
        _exit(EXIT_SUCCESS);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        fprintf(stderr, "preparing failed\n");
    else
        measure(dir);
    unlinkat(dir, "model.json", 0);
    unlinkat(dir, "trace.json", 0);
    rmdir(template);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
