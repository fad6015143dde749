/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The first instructions of a statically linked program that starts from a cold disk.
 *
 * libc's start-up touches pages all over the program: it relocates the program and chooses the best
 * implementation of each string function for this processor. Every page fault reads at most one
 * window of read-ahead, and on a hard disk the 17 requests for headstart-init took 0.17 s.
 * headstart_entry therefore requests the whole file before libc starts, and continues at libc's own
 * entry point.
 *
 * This code runs before relocation, so it calls no function of libc and uses no global data. Only
 * programs that meson links with `-Wl,-e,headstart_entry` use it. */

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)

__asm__(".text\n"
        ".globl headstart_entry\n"
        ".type headstart_entry, @function\n"
        "headstart_entry:\n"
        "    endbr64\n"
        "    movq %rdx, %r12\n" /* a function that libc registers with atexit(3) */
        "    movq %rsp, %rbx\n"
        "    movq %rsp, %rdi\n"
        "    call entry_read_program\n"
        "    movq %rbx, %rsp\n"
        "    movq %r12, %rdx\n"
        "    jmp _start\n"
        ".size headstart_entry, . - headstart_entry\n");

static inline long system_call(long number, long a, long b, long c, long d)
{
    register long fourth __asm__("r10") = d;
    long r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return r;
}

#elif defined(__aarch64__)

__asm__(".text\n"
        ".globl headstart_entry\n"
        ".type headstart_entry, %function\n"
        "headstart_entry:\n"
        "    hint #34\n"    /* bti c */
        "    mov x19, x0\n" /* a function that libc registers with atexit(3) */
        "    mov x0, sp\n"
        "    bl entry_read_program\n"
        "    mov x0, x19\n"
        "    b _start\n"
        ".size headstart_entry, . - headstart_entry\n");

static inline long system_call(long number, long a, long b, long c, long d)
{
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;

    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth)
                     : "memory");
    return first;
}

#else
#error "no entry point for this processor: link without -Wl,-e,headstart_entry"
#endif

void entry_read_program(const uintptr_t *stack);

/* Requests the program's file without waiting for its data. `stack` is the stack as the kernel
 * leaves it (System V ABI): the argument count, then the arguments, the environment and the
 * auxiliary vector; a zero ends each of these three. If a call fails, the program starts without
 * this request. */
__attribute__((used, visibility("hidden"), no_stack_protector)) void entry_read_program(
        const uintptr_t *stack)
{
    const uintptr_t *p = stack + 1 + stack[0] + 1;
    const ElfW(auxv_t) * a;
    long fd;

    while (*p)
        p++;
    a = (const ElfW(auxv_t) *)(p + 1);
    while (a->a_type != AT_NULL && a->a_type != AT_EXECFN)
        a++;
    if (a->a_type != AT_EXECFN)
        return;
    fd = system_call(SYS_openat, AT_FDCWD, (long)a->a_un.a_val, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)system_call(SYS_fadvise64, fd, 0, 0, POSIX_FADV_WILLNEED);
    (void)system_call(SYS_close, fd, 0, 0, 0);
}
