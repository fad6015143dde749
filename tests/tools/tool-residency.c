/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tool-residency FILE [OFFSET LENGTH]: prints how much of a file or block device residency_read()
 * finds resident. For tests. */

#include "observe/residency.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    _cleanup_range_set_ RangeSet resident = {0}, wanted = {0}, both = {0};
    _cleanup_close_ int fd = argc == 2 || argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -EBADF;
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    uint64_t start = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    int r;

    if (size < 0) {
        perror("tool-residency");
        return 2;
    }
    r = range_set_insert(&wanted, start, argc == 4 ? strtoull(argv[3], NULL, 10) : (uint64_t)size);
    if (r >= 0)
        r = residency_read(fd, (uint64_t)size, USEC_INFINITY, &resident);
    if (r >= 0)
        r = range_set_intersect(&resident, &wanted, &both);
    if (r < 0) {
        fprintf(stderr, "%s\n", strerror(-r));
        return 1;
    }
    printf("%" PRIu64 " bytes\n", range_set_total(&both));
    return 0;
}
