/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Plans a prediction from standard input and prints the plan as JSON, for tests/bats/plan.bats. It
 * needs neither a trace nor a model.
 *
 *     tool-plan [OPTION…] ROOT
 *
 *     PATH [<TAB> OFFSET <TAB> LENGTH [<TAB> PROBABILITY]]   a file below ROOT, with a map if there
 *                                                            is an offset, else also a directory
 *                                                            that is listed; the lines of one path
 *                                                            follow one another
 *     @UUID <TAB> OFFSET <TAB> LENGTH [<TAB> PROBABILITY]    metadata of that filesystem
 *
 *     --budget=BYTES, --least=PROBABILITY, --class=CLASS, --output=PACK
 *     --uid=UID    the user whose files the plan may contain (default: only files of root)
 *     --boot       plan the boot (default: a login)
 *     --brief      only the summary, with the CPU time of locating, compiling and writing
 */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/parse.h"
#include "model/ownership.h"
#include "plan/plan.h"

#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void *grow(void *array, size_t *allocated, size_t n, size_t size)
{
    if (grow_array(&array, allocated, n, size) < 0)
        errx(1, "out of memory");
    return array;
}

static void add_line(Prediction *p, char *line, size_t *allocated_maps)
{
    char *save = NULL, *path = strtok_r(line, "\t\n", &save);
    char *offset = strtok_r(NULL, "\t\n", &save), *length = strtok_r(NULL, "\t\n", &save);
    char *likely = strtok_r(NULL, "\t\n", &save);
    double probability = likely ? strtod(likely, NULL) : 1;
    uint64_t o = 0, l = 0;
    PredictedFile *f;

    if (!path)
        return;
    if (offset && (!length || parse_u64(offset, &o) < 0 || parse_u64(length, &l) < 0))
        errx(2, "%s: no range", path);
    if (path[0] == '@') {
        p->metadata = grow(p->metadata, &p->allocated_metadata, p->n_metadata + 1,
                           sizeof(PredictedMetadata));
        p->metadata[p->n_metadata++] = (PredictedMetadata){strdup(path + 1), {o, l, probability}};
        return;
    }
    f = p->n_files > 0 ? &p->files[p->n_files - 1] : NULL;
    if (!f || strcmp(f->path, path) != 0) {
        p->files = grow(p->files, &p->allocated_files, p->n_files + 1, sizeof(PredictedFile));
        f = &p->files[p->n_files];
        *f = (PredictedFile){.path = strdup(path),
                             .directory = !offset,
                             .probability = probability,
                             .first_use = p->n_files++ * USEC_PER_MSEC};
        *allocated_maps = 0;
    }
    if (offset) {
        f->maps = grow(f->maps, allocated_maps, f->n_maps + 1, sizeof(PredictedRange));
        f->maps[f->n_maps++] = (PredictedRange){o, l, probability};
    }
    f->probability = MAX(f->probability, probability);
}

static Prediction *read_prediction(Stage stage)
{
    Prediction *p = calloc(1, sizeof(*p));
    size_t size = 0, allocated_maps = 0;
    char *line = NULL;

    if (!p)
        errx(1, "out of memory");
    p->stage = stage;
    while (getline(&line, &size, stdin) > 0)
        add_line(p, line, &allocated_maps);
    free(line);
    return p;
}

static void put_number(json_object *o, const char *key, uint64_t value)
{
    json_object_object_add(o, key, json_object_new_uint64(value));
}

static void put_place(json_object *o, uint64_t physical)
{
    json_object_object_add(o, "physical",
                           physical == PHYSICAL_UNKNOWN ? NULL : json_object_new_uint64(physical));
}

static json_object *print_volume(const PackContentVolume *g)
{
    json_object *o = json_object_new_object(), *metadata = json_object_new_array();
    json_object *files = json_object_new_array(), *data = json_object_new_array();

    json_object_object_add(o, "mountpoint", json_object_new_string(g->mountpoint));
    json_object_object_add(o, "fstype", json_object_new_string(g->fstype));
    put_number(o, "subvolume_id", g->subvolume_id);
    put_number(o, "flags", g->flags);
    for (size_t i = 0; i < g->n_metadata; i++) {
        json_object *e = json_object_new_object();

        put_number(e, "offset", g->metadata[i].offset);
        put_number(e, "length", g->metadata[i].length);
        json_object_object_add(e, "probability",
                               json_object_new_double(g->metadata[i].probability));
        if (g->metadata[i].item.reader != METADATA_OF_DEVICE) {
            put_number(e, "object", g->metadata[i].item.object);
            put_number(e, "type", g->metadata[i].item.type);
            json_object_object_add(
                    e, "entries",
                    json_object_new_boolean(g->metadata[i].item.reader == METADATA_XFS_DIRECTORY));
        }
        json_object_array_add(metadata, e);
    }
    for (size_t i = 0; i < g->n_files; i++) {
        json_object *e = json_object_new_object();

        json_object_object_add(e, "path", json_object_new_string(g->files[i].path));
        json_object_object_add(e, "directory", json_object_new_boolean(g->files[i].directory));
        put_number(e, "inode", g->files[i].inode);
        json_object_object_add(e, "probability", json_object_new_double(g->files[i].probability));
        json_object_array_add(files, e);
    }
    for (size_t i = 0; i < g->n_data; i++) {
        json_object *e = json_object_new_object();

        json_object_object_add(e, "path", json_object_new_string(g->files[g->data[i].file].path));
        put_number(e, "offset", g->data[i].offset);
        put_number(e, "length", g->data[i].length);
        put_place(e, g->data[i].physical);
        json_object_object_add(e, "probability", json_object_new_double(g->data[i].probability));
        json_object_array_add(data, e);
    }
    json_object_object_add(o, "metadata", metadata);
    json_object_object_add(o, "files", files);
    json_object_object_add(o, "data", data);
    return o;
}

static json_object *print_summary(const PlanSummary *s, const LocatedPlan *l, usec_t cpu)
{
    json_object *o = json_object_new_object(), *skipped = json_object_new_object();
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    put_number(o, "n_files", s->n_files);
    put_number(o, "n_directories", s->n_directories);
    put_number(o, "n_data_ranges", s->n_data_ranges);
    put_number(o, "n_metadata", s->n_metadata);
    put_number(o, "data_bytes", s->data_bytes);
    put_number(o, "metadata_bytes", s->metadata_bytes);
    put_number(o, "gap_bytes", s->gap_bytes);
    json_object_object_add(
            o, "estimated_usec",
            s->estimated_usec == USEC_INFINITY ? NULL : json_object_new_uint64(s->estimated_usec));
    json_object_object_add(o, "metadata_derived", json_object_new_boolean(l->metadata_derived));
    for (PlanSkip k = 0; k < _PLAN_SKIP_MAX; k++)
        put_number(skipped, plan_skip_to_string(k), s->n_skipped[k]);
    json_object_object_add(o, "skipped", skipped);
    put_number(o, "cpu_usec", cpu);
    put_number(o, "peak_kib", (uint64_t)usage.ru_maxrss);
    return o;
}

int main(int argc, char *argv[])
{
    static const struct option options[] = {
            {"budget", required_argument, NULL, 'b'}, {"least", required_argument, NULL, 'l'},
            {"class", required_argument, NULL, 'c'},  {"uid", required_argument, NULL, 'u'},
            {"output", required_argument, NULL, 'o'}, {"boot", no_argument, NULL, 's'},
            {"brief", no_argument, NULL, 'q'},        {0}};
    PlanParameters p = {.policy = POLICY_IDLE,
                        .budget_bytes = UINT64_MAX,
                        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                        .volatile_since = USEC_INFINITY,
                        .device_class = _DEVICE_CLASS_INVALID};
    _cleanup_volume_table_ VolumeTable volumes = {0};
    _cleanup_located_plan_ LocatedPlan *located = NULL;
    _cleanup_prediction_ Prediction *prediction = NULL;
    _cleanup_pack_content_ PackContent *content = NULL;
    _cleanup_free_ void *bytes = NULL;
    json_object *o = json_object_new_object(), *array = json_object_new_array();
    const char *output = NULL;
    uint64_t uid = OWNERSHIP_ANYBODY;
    bool brief = false;
    Stage stage = STAGE_LOGIN;
    PlanSummary s;
    usec_t cpu;
    size_t size;
    int c, r;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c == 'b' && parse_bytes(optarg, &p.budget_bytes) < 0)
            errx(2, "%s: not a number of bytes", optarg);
        if (c == 'u' && parse_u64(optarg, &uid) < 0)
            errx(2, "%s: no UID", optarg);
        if (c == 'l')
            p.min_probability = strtod(optarg, NULL);
        if (c == 'c')
            p.device_class = device_class_from_string(optarg);
        if (c == 'o')
            output = optarg;
        if (c == 's')
            stage = STAGE_BOOT;
        brief = brief || c == 'q';
        if (c == '?')
            return 2;
    }
    if (argc - optind != 1)
        errx(2, "which root?");
    prediction = read_prediction(stage);
    cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID);
    r = volume_table_read(AT_FDCWD, argv[optind], &volumes);
    if (r >= 0)
        r = plan_locate(prediction, argv[optind], &volumes, (uint32_t)uid, USEC_INFINITY, &located);
    if (r >= 0)
        r = plan_compile(located, &p, &content, &s);
    if (r >= 0)
        r = pack_write(content, &bytes, &size);
    cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (r >= 0 && output)
        r = atomic_file_write(AT_FDCWD, output, bytes, size, 0600);
    if (r < 0) {
        errno = -r;
        err(1, "%s", argv[optind]);
    }
    json_object_object_add(o, "summary", print_summary(&s, located, cpu));
    put_number(o, "pack_bytes", size);
    for (size_t i = 0; !brief && i < content->n_volumes; i++)
        json_object_array_add(array, print_volume(&content->volumes[i]));
    json_object_object_add(o, "volumes", array);
    puts(json_object_to_json_string_ext(o,
                                        JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    return 0;
}
