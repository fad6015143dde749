/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tool-deny-syscalls COMMAND…: runs the command under a seccomp filter that kills it at the first
 * system call whose number is on standard input, one per line. For tests/bats/sandbox.bats. */

#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    /* The kernel accepts programs of up to BPF_MAXINSNS instructions. */
    static struct sock_filter code[BPF_MAXINSNS];
    struct sock_fprog program = {.filter = code};
    unsigned short n = 0;
    unsigned number;

    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    while (n < BPF_MAXINSNS - 2 && scanf("%u", &number) == 1) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    if (argc < 2 || n == 1 || !feof(stdin))
        errx(125, "usage: tool-deny-syscalls COMMAND... <NUMBERS");
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        err(125, "cannot set the filter");
    execvp(argv[1], argv + 1);
    err(127, "%s", argv[1]);
}
