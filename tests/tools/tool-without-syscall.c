/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tool-without-syscall NAME ERROR COMMAND…: runs the command as on a kernel that lacks a system
 * call, or in a sandbox that refuses it: a seccomp filter answers the call with ERROR (EPERM,
 * EOPNOTSUPP or ENOSYS). Of ioctl(2), only FS_IOC_FIEMAP is answered in this way. For tests. */

#include "base/macros.h"

#include <endian.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const struct {
    const char *name;
    unsigned number, request; /* 0: any */
} calls[] = {
        {"cachestat", 451, 0},
        {"fanotify_init", SYS_fanotify_init, 0},
        {"fiemap", SYS_ioctl, FS_IOC_FIEMAP},
};

/* Where the low half of the second argument is */
#define REQUEST_AT \
    (offsetof(struct seccomp_data, args) + 8 + (__BYTE_ORDER == __BIG_ENDIAN ? 4U : 0U))

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 3 && i < ELEMENTSOF(calls); i++) {
        unsigned error = strcmp(argv[2], "EPERM") == 0        ? EPERM
                         : strcmp(argv[2], "EOPNOTSUPP") == 0 ? EOPNOTSUPP
                                                              : ENOSYS;
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, REQUEST_AT),
                BPF_JUMP(calls[i].request ? BPF_JMP | BPF_JEQ | BPF_K : BPF_JMP | BPF_JGE | BPF_K,
                         calls[i].request, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {ELEMENTSOF(code), code};

        if (strcmp(calls[i].name, argv[1]) != 0)
            continue;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
            perror("tool-without-syscall");
            return 125;
        }
        execvp(argv[3], argv + 3);
        perror(argv[3]);
        return 127;
    }
    fprintf(stderr, "usage: tool-without-syscall NAME ERROR COMMAND...\n");
    return 125;
}
