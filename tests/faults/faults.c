/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libfaults.so, for LD_PRELOAD: makes one call of a function of the C library fail.
 * tests/faults/inject drives it.
 *
 *     HEADSTART_FAULTS
 *         `list`: writes one line for the first call from each call site.
 *         `FUNCTION NUMBER ERROR`: the call with that number (from 1) of that function fails with
 *         that errno. ERROR `short`: the call transfers half.
 *         `FUNCTION NUMBER+ ERROR`: that call and all later ones fail.
 *         `FUNCTION @SITE ERROR`: the first call from that call site fails.
 *     HEADSTART_FAULTS_PROGRAM
 *         The file name of the program in which this happens. Other programs run undisturbed.
 *     HEADSTART_FAULTS_OUTPUT
 *         The file to which lines `list|failed FUNCTION NUMBER SITE` are appended, and a line
 *         `library crashed 0 0` if a library crashes.
 *
 * A call site is the function and the nearest addresses of the program on the stack, up to four.
 * One address is not enough, because one call in grow_array() serves every table. Calls without the
 * program on the stack have no call site and are not listed. The loader makes such calls before
 * main(), and AddressSanitizer when a thread begins. AddressSanitizer would abort if they failed,
 * so they succeed below AddressSanitizer. Without AddressSanitizer they can fail by number: a
 * program without unwind tables is never seen on the stack.
 *
 * Each wrapper of a system call is declared here with six integer arguments, because the x86-64 and
 * arm64 ABI pass the arguments of all these calls in the same way. These declarations contradict
 * those of the C library, so a wrapper has another name in C (wrap_NAME), and only its assembler
 * name is that of the function. */

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unwind.h>

extern char *getenv(const char *name);
extern long syscall(long number, ...);
extern long strtol(const char *, char **, int);
extern unsigned long long strtoull(const char *, char **, int);

#define SITES_MAX         65536U
#define FRAMES_MAX        48
#define FRAMES_OF_PROGRAM 4

static uintptr_t program_start, program_end, program_base;
static bool begun, active, listing, from_there_on;
static char wanted[64];
static unsigned long wanted_number;
static uint64_t wanted_site;
static int wanted_error; /* -1: short */
static int output_fd = -1;
static uint64_t seen[SITES_MAX];
static unsigned long failed_number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;

static int on_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    /* The first object in the list is the program. */
    program_base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            program_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            program_end = program_start + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static const struct {
    const char *name;
    int error;
} errors[] = {{"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},
              {"EMFILE", EMFILE}, {"EROFS", EROFS},   {"EAGAIN", EAGAIN}, {"short", -1}};

/* Detects whether a crash is the fault of a library: json-c 0.16 and libext2fs 1.47 do not check
 * some of their allocations. */
static _Unwind_Reason_Code on_crash_frame(struct _Unwind_Context *context, void *arg)
{
    static const char *const known[] = {"libjson-c.so", "libext2fs.so"};
    uintptr_t at = _Unwind_GetIP(context);
    Dl_info info;

    if (at >= program_start && at < program_end)
        return _URC_END_OF_STACK;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (dladdr((void *)at, &info) && info.dli_fname && strstr(info.dli_fname, known[i]))
            *(bool *)arg = true;
    return _URC_NO_REASON;
}

static void on_crash(int number)
{
    static const char line[] = "library crashed 0 0\n";
    bool in_library = false;

    inside = true;
    _Unwind_Backtrace(on_crash_frame, &in_library);
    if (in_library)
        syscall(SYS_write, output_fd, line, sizeof(line) - 1);
    signal(number, SIG_DFL);
    raise(number);
}

__attribute__((constructor)) static void begin(void)
{
    const char *command = getenv("HEADSTART_FAULTS"), *path = getenv("HEADSTART_FAULTS_OUTPUT"),
               *program = getenv("HEADSTART_FAULTS_PROGRAM");
    char error[16] = "", number[24] = "";

    begun = true;
    if (!command || !path || !program || strcmp(program, program_invocation_short_name) != 0)
        return;
    dl_iterate_phdr(on_object, NULL);
    output_fd = (int)syscall(SYS_openat, -100, path, 02000000 | 02000 | 0100 | 01, 0600);
    if (strcmp(command, "list") == 0)
        listing = true;
    else if (sscanf(command, "%63s %23s %15s", wanted, number, error) != 3)
        return;
    if (number[0] == '@')
        wanted_site = strtoull(number + 1, NULL, 16);
    else
        wanted_number = (unsigned long)strtol(number, NULL, 10);
    from_there_on = strchr(number, '+');
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (strcmp(errors[i].name, error) == 0)
            wanted_error = errors[i].error;
    signal(SIGSEGV, on_crash);
    signal(SIGBUS, on_crash);
    active = true;
}

typedef struct Stack {
    int n, n_program;
    uint64_t hash;
} Stack;

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *arg)
{
    Stack *s = arg;
    uintptr_t at = _Unwind_GetIP(context);

    if (++s->n > FRAMES_MAX || s->n_program >= FRAMES_OF_PROGRAM)
        return _URC_END_OF_STACK;
    if (at >= program_start && at < program_end) {
        s->hash = (s->hash ^ (at - program_base)) * UINT64_C(0x100000001b3);
        s->n_program++;
    }
    return _URC_NO_REASON;
}

/* Returns the call site; 0 if the program is not on the stack. */
static uint64_t site_of(const char *function)
{
    Stack s = {.hash = UINT64_C(0xcbf29ce484222325)};

    for (const char *c = function; *c; c++)
        s.hash = (s.hash ^ (uint64_t)*c) * UINT64_C(0x100000001b3);
    _Unwind_Backtrace(on_frame, &s);
    return s.n_program > 0 ? s.hash : 0;
}

/* Returns whether this is the first call from the site. */
static bool is_new(uint64_t site)
{
    for (size_t i = site % SITES_MAX;; i = (i + 1) % SITES_MAX) {
        if (seen[i] == site)
            return false;
        if (seen[i] == 0) {
            seen[i] = site;
            return true;
        }
    }
}

static void put(const char *what, const char *function, unsigned long number, uint64_t site)
{
    char line[160];
    int n = snprintf(line, sizeof(line), "%s %s %lu %016llx\n", what, function, number,
                     (unsigned long long)site);

    if (n > 0)
        syscall(SYS_write, output_fd, line, (long)n);
}

/* Only AddressSanitizer's library defines this function. */
__attribute__((weak)) void __asan_init(void);

/* Returns whether a call from `site` may be made to fail. */
static bool may_fail(uint64_t site)
{
    return site != 0 || !__asan_init;
}

/* Returns 0 if the call is to be executed, the errno with which it is to fail, or -1 if it is to
 * transfer half. `counter` counts the function's calls. */
static int strike(const char *function, unsigned long *counter)
{
    uint64_t site = 0;
    bool due;
    int r = 0;

    if (!active || inside || (!listing && strcmp(function, wanted) != 0))
        return 0;
    inside = true;
    pthread_mutex_lock(&lock);
    (*counter)++;
    due = failed_number > 0 ? from_there_on : wanted_site != 0 || *counter == wanted_number;
    if (listing || due)
        site = site_of(function);
    if (listing) {
        if (site != 0 && is_new(site))
            put("list", function, *counter, site);
    } else if (due && may_fail(site) &&
               (failed_number > 0 || wanted_site == 0 || site == wanted_site)) {
        if (failed_number++ == 0)
            put("failed", function, *counter, site);
        r = wanted_error;
    }
    pthread_mutex_unlock(&lock);
    inside = false;
    return r;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Memory that dlsym() and a sanitizer need before this library is initialised. */
static char early[1 << 20];
static size_t early_used;

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

static void *early_get(size_t size)
{
    void *p = early + early_used;

    early_used += (size + 15) / 16 * 16;
    return early_used <= sizeof(early) ? p : NULL;
}

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t),
        *(*real_realloc)(void *, size_t), *(*real_reallocarray)(void *, size_t, size_t);
static char *(*real_strdup)(const char *), *(*real_strndup)(const char *, size_t);
static void (*real_free)(void *);

static bool find_memory(void)
{
    static bool finding;

    if (real_free)
        return true;
    if (finding || !begun)
        return false;
    finding = true;
    real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    real_reallocarray = (void *(*)(void *, size_t, size_t))dlsym(RTLD_NEXT, "reallocarray");
    real_strdup = (char *(*)(const char *))dlsym(RTLD_NEXT, "strdup");
    real_strndup = (char *(*)(const char *, size_t))dlsym(RTLD_NEXT, "strndup");
    real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    finding = false;
    return true;
}

/* With `+`, all functions of this group fail after the first failure. */
static bool memory_is_gone;

static bool fails_too(const char *function)
{
    bool fails;

    inside = true;
    fails = may_fail(site_of(function));
    inside = false;
    return fails;
}

#define FAIL_MEMORY(name)                                                             \
    static unsigned long n_calls;                                                     \
    if (!inside && (memory_is_gone ? fails_too(name) : strike(name, &n_calls) > 0)) { \
        memory_is_gone = from_there_on;                                               \
        errno = ENOMEM;                                                               \
        return NULL;                                                                  \
    }

void *malloc(size_t size);
void *malloc(size_t size)
{
    if (!find_memory())
        return early_get(size);
    FAIL_MEMORY("malloc")
    return real_malloc(size);
}

void *calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size)
{
    if (!find_memory())
        return early_get(n * size);
    FAIL_MEMORY("calloc")
    return real_calloc(n, size);
}

void *realloc(void *p, size_t size);
void *realloc(void *p, size_t size)
{
    if (!find_memory() || is_early(p)) {
        char *q = find_memory() ? real_malloc(size) : early_get(size);
        size_t left = is_early(p) ? (size_t)(early + sizeof(early) - (char *)p) : 0;

        if (q && p)
            memcpy(q, p, size < left ? size : left);
        return q;
    }
    FAIL_MEMORY("realloc")
    return real_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size);
void *reallocarray(void *p, size_t n, size_t size)
{
    if (!find_memory())
        return p ? NULL : early_get(n * size);
    FAIL_MEMORY("reallocarray")
    return real_reallocarray(p, n, size);
}

#undef strdup
#undef strndup
char *strdup(const char *s)
{
    if (!find_memory()) {
        char *q = early_get(strlen(s) + 1);

        return q ? strcpy(q, s) : NULL;
    }
    FAIL_MEMORY("strdup")
    return real_strdup(s);
}

char *strndup(const char *s, size_t n)
{
    if (!find_memory()) {
        char *q = early_get(strnlen(s, n) + 1);

        return q ? memcpy(q, s, strnlen(s, n)) : NULL;
    }
    FAIL_MEMORY("strndup")
    return real_strndup(s, n);
}

void free(void *p);
void free(void *p)
{
    if (p && !is_early(p) && find_memory())
        real_free(p);
}

/* --- system calls ----------------------------------------------------------------------------- */

typedef long (*call_t)(long, long, long, long, long, long);

#define WRAP(name, failure, on_short)                                                \
    long wrap_##name(long a, long b, long c, long d, long e, long f) __asm__(#name); \
    long wrap_##name(long a, long b, long c, long d, long e, long f)                 \
    {                                                                                \
        static unsigned long n_calls;                                                \
        static call_t real;                                                          \
        int r;                                                                       \
        if (!real)                                                                   \
            real = (call_t)dlsym(RTLD_NEXT, #name);                                  \
        r = strike(#name, &n_calls);                                                 \
        if (r > 0)                                                                   \
            return failure(r);                                                       \
        if (r < 0) {                                                                 \
            on_short;                                                                \
        }                                                                            \
        return real(a, b, c, d, e, f);                                               \
    }

static long set_errno(int error)
{
    errno = error;
    return -1;
}

static long set_errno_null(int error)
{
    errno = error;
    return 0;
}

static long give_error(int error)
{
    return error;
}

/* Wraps a function that returns -1 and sets errno if it fails. */
#define CALL(name) WRAP(name, set_errno, )
/* Does the same as CALL. The third argument is a number of bytes, which a short transfer halves. */
#define TRANSFER(name) WRAP(name, set_errno, c = c > 1 ? c / 2 : c)
/* Wraps a function that returns NULL and sets errno if it fails. */
#define POINTER(name) WRAP(name, set_errno_null, )
/* Wraps a function that returns the error number if it fails. */
#define NUMBER(name) WRAP(name, give_error, )

TRANSFER(read)
TRANSFER(__read_chk)
TRANSFER(pread64)
TRANSFER(pread)
TRANSFER(write)
TRANSFER(pwrite64)
TRANSFER(recv)
TRANSFER(send)
TRANSFER(sendto)
CALL(recvmsg)
CALL(sendmsg)
CALL(open)
CALL(open64)
CALL(__open64_2)
CALL(openat)
CALL(openat64)
CALL(__openat64_2)
CALL(fsync)
CALL(fdatasync)
CALL(rename)
CALL(renameat)
CALL(unlink)
CALL(unlinkat)
CALL(mkdir)
CALL(mkdirat)
CALL(fchmod)
CALL(ftruncate64)
CALL(fstat64)
CALL(fstatat64)
CALL(stat64)
CALL(lstat64)
CALL(fstat)
CALL(fstatat)
CALL(stat)
CALL(lstat)
CALL(statx)
CALL(statfs64)
CALL(fstatfs64)
CALL(access)
CALL(faccessat)
CALL(readlink)
CALL(readlinkat)
CALL(__readlinkat_chk)
CALL(lseek64)
CALL(ioctl)
CALL(fcntl64)
CALL(flock)
CALL(mmap64)
CALL(mmap)
CALL(mincore)
CALL(poll)
CALL(ppoll)
CALL(epoll_wait)
CALL(epoll_ctl)
CALL(epoll_create1)
CALL(timerfd_create)
CALL(timerfd_settime)
CALL(signalfd)
CALL(eventfd)
CALL(inotify_init1)
CALL(inotify_add_watch)
CALL(socket)
CALL(bind)
CALL(listen)
CALL(accept4)
CALL(connect)
CALL(setsockopt)
CALL(getsockopt)
CALL(pipe2)
CALL(fork)
CALL(waitpid)
CALL(uname)
CALL(getrandom)
CALL(fanotify_init)
CALL(fanotify_mark)
CALL(open_by_handle_at)
CALL(name_to_handle_at)
CALL(getrlimit64)
CALL(setrlimit64)
POINTER(opendir)
POINTER(fdopendir)
POINTER(readdir64)
POINTER(fopen)
POINTER(fopen64)
POINTER(realpath)
NUMBER(posix_fadvise64)
NUMBER(posix_memalign)
NUMBER(posix_spawnp)
NUMBER(pthread_create)

/* openat2, cachestat and other calls for which the C library has no wrapper. syscall(2) has the
 * number and at most five arguments here, because none of these calls has six. */
CALL(syscall)
