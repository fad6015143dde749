/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* diskcost: computes what reads cost on a disk of the model, in their own order and in the best
 * one.
 *
 *     diskcost [OPTION…] [LOG]
 *
 * LOG is a log of disksim --log, or any text with lines `OFFSET BYTES`; without LOG, standard input
 * is read. Each `# mark NAME` line begins a section. Each section is computed separately. For each
 * section:
 *
 *     reads, MB   how much was read
 *     served s    for how long the disk was busy with these reads, as logged
 *     as read s   the same reads in the same order, all known at the beginning
 *     sorted s    the same reads sorted by position, all known at the beginning
 *     sweep s     sorted, each byte once, neighbours joined into one read, and gaps read over where
 *                 that is quicker than to seek: no order takes less time
 */

#include "diskmodel.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Section {
    char name[96];
    DiskRequest *requests;
    size_t n, allocated;
    uint64_t served_usec;
} Section;

static int by_offset(const void *a, const void *b)
{
    const DiskRequest *x = a, *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Joins requests that are sorted by offset, in place. Returns how many remain. */
static size_t sweep(const DiskProfile *p, uint64_t stroke, DiskRequest *requests, size_t n)
{
    size_t out = 0;

    for (size_t i = 1; i < n; i++) {
        DiskRequest *last = requests + out, *r = requests + i;
        uint64_t end = last->offset + last->length, r_end = r->offset + r->length;
        Disk d = disk_init(p, stroke);

        d.head = end;
        if (r->offset <= end || (p->rotational && r->offset - end <= p->gap_bytes &&
                                 disk_transfer_nsec(p, r->offset - end) <=
                                         p->fixed_nsec + disk_seek_nsec(&d, r->offset))) {
            if (r_end > end)
                last->length = r_end - last->offset;
        } else
            requests[++out] = *r;
    }
    return n > 0 ? out + 1 : 0;
}

static void print_section(Section *s, const DiskProfile *p, uint64_t stroke, bool json, bool first)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->n; i++)
        bytes += s->requests[i].length;
    double as_read = (double)disk_sequence_nsec(p, stroke, s->requests, s->n) / 1e9;
    if (s->n > 0)
        qsort(s->requests, s->n, sizeof(DiskRequest), by_offset);
    double sorted = (double)disk_sequence_nsec(p, stroke, s->requests, s->n) / 1e9;
    size_t joined = sweep(p, stroke, s->requests, s->n);
    double swept = (double)disk_sequence_nsec(p, stroke, s->requests, joined) / 1e9;

    if (json)
        printf("%s{\"section\":\"%s\",\"reads\":%zu,\"mb\":%.3f,\"served_s\":%.4f,"
               "\"as_read_s\":%.4f,\"sorted_s\":%.4f,\"sweep_s\":%.4f,\"sweep_reads\":%zu}",
               first ? "[" : ",\n ", s->name, s->n, (double)bytes / 1e6,
               (double)s->served_usec / 1e6, as_read, sorted, swept, joined);
    else {
        if (first)
            printf("%-32s %7s %8s %9s %10s %9s %8s\n", "section", "reads", "MB", "served s",
                   "as read s", "sorted s", "sweep s");
        printf("%-32s %7zu %8.2f %9.3f %10.3f %9.3f %8.3f\n", s->name, s->n, (double)bytes / 1e6,
               (double)s->served_usec / 1e6, as_read, sorted, swept);
    }
}

static void add(Section *s, uint64_t offset, uint64_t length)
{
    if (s->n == s->allocated) {
        size_t n = s->allocated > 0 ? s->allocated * 2 : 1024;
        DiskRequest *p = reallocarray(s->requests, n, sizeof(DiskRequest));
        if (!p)
            errx(EXIT_FAILURE, "out of memory");
        s->requests = p;
        s->allocated = n;
    }
    s->requests[s->n++] = (DiskRequest){.offset = offset, .length = length};
}

/* Begins the section of a mark. The section gets the name of the mark, in which `_` replaces the
 * characters that JSON would escape. */
static void set_name(Section *s, const char *name)
{
    size_t i = 0;

    for (; name[i] && name[i] != ' ' && name[i] != '\n' && i + 1 < sizeof(s->name); i++)
        s->name[i] = (unsigned char)name[i] < ' ' || strchr("\"\\", name[i]) ? '_' : name[i];
    s->name[i] = '\0';
    s->n = 0;
    s->served_usec = 0;
}

static void help(void)
{
    printf("diskcost [OPTION…] [LOG]\n\n"
           "Prints what the reads of a disksim log cost: as they came, sorted, in one sweep.\n\n"
           "  --profile=NAME  another disk than the log's\n"
           "  --stroke=BYTES  size of that disk\n"
           "  --json          for programs\n"
           "  --help          print this and exit\n");
}

int main(int argc, char *argv[])
{
    enum { OPT_PROFILE = 256, OPT_STROKE, OPT_JSON, OPT_HELP };
    static const struct option options[] = {{"profile", required_argument, NULL, OPT_PROFILE},
                                            {"stroke", required_argument, NULL, OPT_STROKE},
                                            {"json", no_argument, NULL, OPT_JSON},
                                            {"help", no_argument, NULL, OPT_HELP},
                                            {}};
    const DiskProfile *profile = NULL;
    uint64_t stroke = 0;
    bool json = false;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        switch (c) {
        case OPT_PROFILE:
            profile = disk_profile_by_name(optarg);
            if (!profile)
                errx(EXIT_FAILURE, "no profile is called %s", optarg);
            break;
        case OPT_STROKE:
            errno = 0;
            stroke = strtoull(optarg, NULL, 10);
            if (errno || stroke == 0)
                errx(EXIT_FAILURE, "--stroke= is a number of bytes");
            break;
        case OPT_JSON:
            json = true;
            break;
        case OPT_HELP:
            help();
            return EXIT_SUCCESS;
        default:
            return EXIT_FAILURE;
        }

    FILE *f = stdin;
    if (optind < argc && !(f = fopen(argv[optind], "re")))
        err(EXIT_FAILURE, "%s", argv[optind]);

    Section s = {.name = "all"};
    char line[512], name[64];
    bool first = true;
    for (unsigned n = 1; fgets(line, sizeof(line), f); n++) {
        uint64_t offset, length, size, service = 0;

        if (sscanf(line, "# disksim profile=%63s stroke=%" SCNu64, name, &size) == 2) {
            if (!profile)
                profile = disk_profile_by_name(name);
            if (stroke == 0)
                stroke = size;
        } else if (strncmp(line, "# mark ", 7) == 0) {
            if (!profile || stroke == 0)
                errx(EXIT_FAILURE, "the log names no disk: use --profile= and --stroke=");
            if (s.n > 0 || strcmp(s.name, "all") != 0) {
                print_section(&s, profile, stroke, json, first);
                first = false;
            }
            set_name(&s, line + 7);
        } else if (line[0] == '#' || line[0] == '\n')
            continue;
        else if (sscanf(line, "%*u %*1[Rr] %" SCNu64 " %" SCNu64 " %*u %" SCNu64, &offset, &length,
                        &service) >= 2 ||
                 sscanf(line, "%" SCNu64 " %" SCNu64, &offset, &length) == 2) {
            if (offset > UINT64_MAX / 2 || length > UINT64_MAX / 4)
                errx(EXIT_FAILURE, "line %u: no such disk", n);
            add(&s, offset, length);
            s.served_usec += service;
        } else
            errx(EXIT_FAILURE, "line %u is not a read", n);
    }
    if (ferror(f))
        err(EXIT_FAILURE, "reading");
    if (!profile || stroke == 0)
        errx(EXIT_FAILURE, "the log names no disk: use --profile= and --stroke=");
    print_section(&s, profile, stroke, json, first);
    if (json)
        printf("]\n");
    free(s.requests);
    if (f != stdin)
        fclose(f);
    return EXIT_SUCCESS;
}
