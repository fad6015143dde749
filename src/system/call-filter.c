/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/call-filter.h"
#include "base/macros.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Since Linux 5.1, new calls have consecutive numbers, which differ by a constant between
 * architectures. */
#define LAST_KNOWN (SYS_openat2 + 13) /* set_mempolicy_home_node(2) */
#define CACHESTAT  (SYS_openat2 + 14)

/* Higher numbers are private calls of the architecture: cacheflush and set_tls of 32-bit ARM,
 * without which no program starts. */
#ifdef __arm__
#define PRIVATE 0x0f0000U
#else
#define PRIVATE UINT32_MAX
#endif

int call_filter_complete(void)
{
    struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN, 0, 3),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CACHESTAT, 2, 0),
            BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, PRIVATE, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ELEMENTSOF(code), .filter = code};

    if (prctl(PR_GET_SECCOMP) != SECCOMP_MODE_FILTER || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 0;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 1;
}
