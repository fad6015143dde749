/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Files that are stored compressed by gzip: traces, the model and packs. A compressed file has
 * about a quarter of the size of its content. Every reader also accepts plain content, which older
 * versions stored. */

#include "base/macros.h"

/* Compresses memory into a gzip member. The output depends on the input alone. The caller frees
 * *ret. Returns 0, -E2BIG (the input, or the most that it can compress to, exceeds 4 GiB - 1), or
 * -ENOMEM. */
int gzip_compress(const void *data, size_t size, char **ret, size_t *ret_size);

/* Returns true if the bytes begin as a gzip member does. */
bool gzip_is_compressed(const void *data, size_t size);

/* Expands one gzip member into a NUL-terminated buffer of *ret_size bytes (the NUL is not counted)
 * and checks its checksum. Nothing is allocated if the member states a size above max_size, or a
 * size that its input cannot expand to. The caller frees *ret. Returns 0, -EBADMSG (not gzip,
 * damaged, truncated, or followed by other bytes), -E2BIG (expands to more than max_size bytes), or
 * -ENOMEM. */
int gzip_expand(const void *data, size_t size, size_t max_size, char **ret, size_t *ret_size);

/* Replaces a file by the compressed data, as atomic_file_write() does. */
int compressed_file_write(int dir_fd, const char *name, const void *data, size_t size,
                          unsigned mode);

/* Reads a whole regular file, and expands it if it is compressed. The file and its content may have
 * at most max_size bytes each. Returns 0, -EBADMSG (not a regular file, or the compressed data are
 * damaged), or another error of file_read_whole() or gzip_expand(). With -EBADMSG, *ret_reason
 * becomes a static string with the reason. Otherwise it is untouched. ret_reason may be NULL. */
int compressed_file_read(int dir_fd, const char *name, size_t max_size, char **ret,
                         size_t *ret_size, const char **ret_reason);

/* Like compressed_file_read(), but with -EBADMSG and -E2BIG *ret_error becomes one line with the
 * reason, or NULL if memory is short. With -E2BIG the line contains the limit. The caller frees
 * *ret_error. With other errors *ret_error is untouched; error_text() describes them. */
int compressed_file_load(int dir_fd, const char *name, size_t max_size, char **ret,
                         size_t *ret_size, char **ret_error);

/* Reads at most `size` - 1 bytes from the start of the content and adds a NUL. *ret_content_size
 * (may be NULL) becomes the size of the whole content; a compressed file states it at its end,
 * modulo 2^32. Never blocks on a FIFO or a device. Returns 0, -EBADMSG (the compressed data are
 * damaged), or another negative errno. */
int compressed_file_read_head(int dir_fd, const char *name, char *buf, size_t size,
                              uint64_t *ret_content_size);
