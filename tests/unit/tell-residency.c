/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tell-residency FILE: how much of it residency_read() finds resident. For tests. */

#include "record/residency.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    _cleanup_range_set_ RangeSet ranges = {0};
    _cleanup_close_ int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -EBADF;
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0) {
        perror("tell-residency");
        return 2;
    }
    r = residency_read(fd, (uint64_t)st.st_size, &ranges);
    if (r < 0) {
        fprintf(stderr, "%s\n", strerror(-r));
        return 1;
    }
    printf("%" PRIu64 " bytes\n", range_set_total(&ranges));
    return 0;
}
