/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tool-open-files UID COUNT SECONDS DIRECTORY: as user UID, opens the files of the directory in
 * turn, again and again, COUNT times in all. It spreads the opens evenly over SECONDS; if that is
 * too fast for the machine, it takes longer. Prints the number of opens and the seconds that they
 * took. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX 100000
#define BATCH     256 /* the number of opens after which the clock is read */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Opens files of the directory fd, `count` times in all. */
static void open_all(int fd, char *const *names, size_t n, unsigned long count, double seconds)
{
    double start = now();

    for (unsigned long i = 0; i < count; i++) {
        double ahead = i % BATCH ? 0 : (double)i / (double)count * seconds - (now() - start);
        int file;

        if (ahead > 0)
            usleep((useconds_t)(ahead * 1e6));
        file = openat(fd, names[i % n], O_RDONLY | O_CLOEXEC);
        if (file < 0) {
            perror(names[i % n]);
            exit(1);
        }
        close(file);
    }
    printf("%lu %.3f\n", count, now() - start);
}

int main(int argc, char **argv)
{
    static char *names[FILES_MAX];
    struct dirent *d;
    size_t n = 0;
    DIR *dir;

    if (argc != 5 || !(dir = opendir(argv[4]))) {
        fputs("usage: tool-open-files UID COUNT SECONDS DIRECTORY\n", stderr);
        return 2;
    }
    while (n < FILES_MAX && (d = readdir(dir)))
        if (d->d_type == DT_REG && !(names[n++] = strdup(d->d_name)))
            return 1;
    if (n == 0 || setuid((uid_t)strtoul(argv[1], NULL, 10)) < 0) {
        perror("tool-open-files");
        return 1;
    }
    open_all(dirfd(dir), names, n, strtoul(argv[2], NULL, 10), strtod(argv[3], NULL));
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    closedir(dir);
    return 0;
}
