/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tool-lock-files FILE…: locks the files in memory until its input ends. It prints "locked" as soon
 * as all files are locked. Tests use it on kernels that reclaim cold pages within seconds. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char c;

    for (int i = 1; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        struct stat st;
        void *p;

        if (fd < 0 || fstat(fd, &st) < 0) {
            perror(argv[i]);
            return 1;
        }
        if (st.st_size == 0)
            continue;
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        /* The sanitizers replace mlock(2) by a function that does nothing. */
        if (p == MAP_FAILED || syscall(SYS_mlock, p, st.st_size) < 0) {
            perror(argv[i]);
            return 1;
        }
        close(fd);
    }
    puts("locked");
    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
    return 0;
}
