/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/compressed-file.h"

#include "base/atomic-file.h"
#include "base/time-util.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* zlib: a window of 32 KiB, with the header and the checksum of gzip. */
#define GZIP_WINDOW (15 + 16)
#define GZIP_MEMORY 8
#define GZIP_LEVEL  6
/* The largest ratio that deflate reaches. */
#define GZIP_RATIO_MAX 1032U

bool gzip_is_compressed(const void *data, size_t size)
{
    const uint8_t *b = data;

    return size >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

int gzip_compress(const void *data, size_t size, char **ret, size_t *ret_size)
{
    _cleanup_free_ char *buf = NULL;
    z_stream z = {0};
    size_t bound;
    int k;

    if (size > UINT32_MAX)
        return -E2BIG;
    k = deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY);
    if (k != Z_OK)
        return -ENOMEM;
    bound = deflateBound(&z, size);
    buf = bound <= UINT32_MAX ? malloc(bound) : NULL;
    if (!buf) {
        deflateEnd(&z);
        return bound <= UINT32_MAX ? -ENOMEM : -E2BIG;
    }
    /* zlib does not write to the input; its type lacks the const. */
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = (Bytef *)buf;
    z.avail_out = (uInt)bound;
    k = deflate(&z, Z_FINISH);
    deflateEnd(&z);
    if (k != Z_STREAM_END)
        return -ENOMEM;
    *ret_size = z.total_out;
    *ret = TAKE_PTR(buf);
    return 0;
}

/* Expands until the member ends, the input ends, or `size` bytes are written. Returns zlib's
 * result. *ret_size is the number of bytes in `buf`, both when the function is called and when it
 * returns. */
static int expand_into(z_stream *z, char *buf, size_t size, size_t *ret_size)
{
    size_t n = *ret_size;
    int k = Z_OK;

    while (k == Z_OK && n < size) {
        uInt room = (uInt)MIN(size - n, (size_t)UINT32_MAX);

        z->next_out = (Bytef *)(buf + n);
        z->avail_out = room;
        k = inflate(z, Z_NO_FLUSH);
        n += room - z->avail_out;
        /* No progress is possible: the input is truncated. */
        if (k == Z_OK && z->avail_in == 0 && z->avail_out > 0)
            k = Z_BUF_ERROR;
    }
    *ret_size = n;
    return k;
}

static int start_expanding(z_stream *z, const void *data, size_t size)
{
    *z = (z_stream){
            .next_in = (Bytef *)(uintptr_t)data,
            .avail_in = (uInt)size,
    };
    if (size > UINT32_MAX)
        return -E2BIG;
    return inflateInit2(z, GZIP_WINDOW) == Z_OK ? 0 : -ENOMEM;
}

/* Returns the size that the last four bytes of the gzip data state: the number of bytes that the
 * data expand to, modulo 2^32. Returns 0 if there are fewer bytes. */
static size_t stated_size(const void *data, size_t size)
{
    uint32_t end;

    if (size < sizeof(end))
        return 0;
    memcpy(&end, (const char *)data + size - sizeof(end), sizeof(end));
    return le32toh(end);
}

int gzip_expand(const void *data, size_t size, size_t max_size, char **ret, size_t *ret_size)
{
    size_t expected = stated_size(data, size), n = 0;
    _cleanup_free_ char *buf = NULL;
    z_stream z;
    int k, r;

    if (expected / GZIP_RATIO_MAX > size)
        return -EBADMSG;
    if (expected > max_size)
        return -E2BIG;
    /* The last byte is reserved for the NUL. If the expanded data fill this byte as well, they are
     * larger than stated. */
    buf = malloc(expected + 1);
    if (!buf)
        return -ENOMEM;
    r = start_expanding(&z, data, size);
    if (r < 0)
        return r;
    k = expand_into(&z, buf, expected + 1, &n);
    if (k == Z_MEM_ERROR)
        r = -ENOMEM;
    else if (k != Z_STREAM_END || z.avail_in > 0)
        r = -EBADMSG;
    inflateEnd(&z);
    if (r < 0)
        return r;
    buf[n] = 0;
    *ret = TAKE_PTR(buf);
    *ret_size = n;
    return 0;
}

int compressed_file_write(int dir_fd, const char *name, const void *data, size_t size,
                          unsigned mode)
{
    _cleanup_free_ char *compressed = NULL;
    size_t n;
    int r = gzip_compress(data, size, &compressed, &n);

    return r < 0 ? r : atomic_file_write(dir_fd, name, compressed, n, mode);
}

int compressed_file_read(int dir_fd, const char *name, size_t max_size, char **ret,
                         size_t *ret_size, const char **ret_reason)
{
    _cleanup_free_ char *buf = NULL;
    const char *reason = "not a regular file";
    size_t size;
    int r = file_read_whole(dir_fd, name, max_size, &buf, &size);

    if (r >= 0 && gzip_is_compressed(buf, size)) {
        reason = "the compressed data are damaged";
        r = gzip_expand(buf, size, max_size, ret, ret_size);
    } else if (r >= 0) {
        *ret = TAKE_PTR(buf);
        *ret_size = size;
    }
    if (r == -EBADMSG && ret_reason)
        *ret_reason = reason;
    return r;
}

static char *describe_excess(int dir_fd, const char *name, size_t max_size)
{
    char is[FORMAT_BYTES_MAX], limit[FORMAT_BYTES_MAX];
    char *line = NULL;
    struct stat st;
    int n;

    format_bytes(limit, sizeof(limit), max_size);
    if (fstatat(dir_fd, name, &st, 0) >= 0 && (uint64_t)st.st_size > max_size)
        n = asprintf(&line, "too large: %s, the limit is %s",
                     format_bytes(is, sizeof(is), (uint64_t)st.st_size), limit);
    else
        n = asprintf(&line, "too large: it expands to more than the limit of %s", limit);
    return n < 0 ? NULL : line;
}

int compressed_file_load(int dir_fd, const char *name, size_t max_size, char **ret,
                         size_t *ret_size, char **ret_error)
{
    const char *reason = NULL;
    int r = compressed_file_read(dir_fd, name, max_size, ret, ret_size, &reason);

    if (r == -E2BIG)
        *ret_error = describe_excess(dir_fd, name, max_size);
    else if (r == -EBADMSG)
        *ret_error = strdup(reason);
    return r;
}

/* Reads the size of the content of a file, of which `head` has the first bytes. 0 or a negative
 * errno. */
static int read_content_size(int fd, const char *head, size_t head_size, uint64_t *ret)
{
    uint32_t end = 0;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    *ret = (uint64_t)st.st_size;
    if (!gzip_is_compressed(head, head_size))
        return 0;
    if (st.st_size >= (off_t)sizeof(end) &&
        pread(fd, &end, sizeof(end), st.st_size - (off_t)sizeof(end)) < 0)
        return -errno;
    *ret = le32toh(end);
    return 0;
}

int compressed_file_read_head(int dir_fd, const char *name, char *buf, size_t size,
                              uint64_t *ret_content_size)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    /* Compression hardly ever enlarges text, so the first `size` - 1 bytes of the file contain the
     * requested head. */
    _cleanup_free_ char *head = malloc(size);
    size_t n = 0;
    z_stream z;
    ssize_t k;
    int r;

    if (fd < 0)
        return -errno;
    if (!head)
        return -ENOMEM;
    k = pread(fd, head, size - 1, 0);
    if (k < 0)
        return -errno;
    if (ret_content_size)
        CHECK(read_content_size(fd, head, (size_t)k, ret_content_size));
    if (!gzip_is_compressed(head, (size_t)k)) {
        memcpy(buf, head, (size_t)k);
        buf[k] = 0;
        return 0;
    }
    r = start_expanding(&z, head, (size_t)k);
    if (r < 0)
        return r;
    /* The input may end within the member, so Z_BUF_ERROR is no error here. */
    switch (expand_into(&z, buf, size - 1, &n)) {
    case Z_MEM_ERROR:
        r = -ENOMEM;
        break;
    case Z_DATA_ERROR:
    case Z_NEED_DICT:
        r = -EBADMSG;
        break;
    }
    inflateEnd(&z);
    buf[n] = 0;
    return r;
}
