/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/mountinfo.h"

#include <limits.h>
#include <string.h>

static void mount_done(Mount *m)
{
    free(m->root);
    free(m->target);
    free(m->fstype);
    free(m->source);
    free(m->super_options);
}

void mount_table_done(MountTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        mount_done(&t->mounts[i]);
    free(t->mounts);
    *t = (MountTable){0};
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Returns a copy in which the kernel's \ooo escapes are resolved. The caller frees it. */
static char *unescape(const char *s, size_t n)
{
    char *out = malloc(n + 1), *p = out;

    if (!out)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 3 < n && is_octal(s[i + 1]) && is_octal(s[i + 2]) &&
            is_octal(s[i + 3])) {
            *p++ = (char)((s[i + 1] - '0') << 6 | (s[i + 2] - '0') << 3 | (s[i + 3] - '0'));
            i += 3;
        } else
            *p++ = s[i];
    }
    *p = 0;
    return out;
}

/* Finds the next field of the line. Blanks separate the fields. Returns false at the end of the
 * line. */
static bool next_field(const char **p, const char *end, const char **field, size_t *length)
{
    while (*p < end && **p == ' ')
        (*p)++;
    if (*p >= end)
        return false;
    *field = *p;
    while (*p < end && **p != ' ')
        (*p)++;
    *length = (size_t)(*p - *field);
    return true;
}

/* Finds the source, which follows a blank. The source of a FUSE filesystem may be empty, so that
 * two blanks follow the type. */
static bool next_source(const char **p, const char *end, const char **field, size_t *length)
{
    if (end - *p < 2 || (*p)[0] != ' ' || (*p)[1] != ' ')
        return next_field(p, end, field, length);
    *field = ++*p;
    *length = 0;
    return true;
}

static bool parse_number(const char *s, size_t n, unsigned *ret)
{
    unsigned v = 0;

    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(v, 10U, &v) ||
            __builtin_add_overflow(v, (unsigned)(s[i] - '0'), &v))
            return false;
    *ret = v;
    return true;
}

/* Parses a line. Returns 1, 0 if the text is not a line of mountinfo, or -ENOMEM. The format is
 * that of proc(5): id parent maj:min root target options [optional…] - fstype source
 * super-options */
static int parse_line(const char *line, const char *end, Mount *ret)
{
    static bool (*const next_of_tail[])(const char **, const char *, const char **,
                                        size_t *) = {next_field, next_source, next_field};
    const char *f[6], *tail[3], *p = line, *x, *colon;
    size_t l[6], tail_length[3], n;
    Mount m = {0};

    for (int i = 0; i < 6; i++)
        if (!next_field(&p, end, &f[i], &l[i]))
            return 0;
    do
        if (!next_field(&p, end, &x, &n))
            return 0;
    while (n != 1 || x[0] != '-');
    for (int i = 0; i < 3; i++)
        if (!next_of_tail[i](&p, end, &tail[i], &tail_length[i]))
            return 0;

    colon = memchr(f[2], ':', l[2]);
    if (!parse_number(f[0], l[0], &m.id) || !parse_number(f[1], l[1], &m.parent) || !colon ||
        !parse_number(f[2], (size_t)(colon - f[2]), &m.major) ||
        !parse_number(colon + 1, l[2] - (size_t)(colon - f[2]) - 1, &m.minor))
        return 0;
    m.readonly = l[5] >= 2 && memcmp(f[5], "ro", 2) == 0 && (l[5] == 2 || f[5][2] == ',');
    m.root = unescape(f[3], l[3]);
    m.target = unescape(f[4], l[4]);
    m.fstype = unescape(tail[0], tail_length[0]);
    m.source = unescape(tail[1], tail_length[1]);
    m.super_options = unescape(tail[2], tail_length[2]);
    if (!m.root || !m.target || !m.fstype || !m.source || !m.super_options) {
        mount_done(&m);
        return -ENOMEM;
    }
    *ret = m;
    return 1;
}

int mount_table_parse(const char *text, MountTable *ret, size_t *ret_bad)
{
    MountTable t = {0};
    size_t bad = 0;
    int r;

    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');

        r = grow_array(&t.mounts, &t.allocated, t.n + 1, sizeof(Mount));
        if (r >= 0)
            r = parse_line(line, end, &t.mounts[t.n]);
        if (r < 0) {
            mount_table_done(&t);
            return r;
        }
        if (r > 0)
            t.n++;
        else if (end > line)
            bad++;
        line = *end ? end + 1 : end;
    }
    *ret = t;
    if (ret_bad)
        *ret_bad = bad;
    return 0;
}

const Mount *mount_table_root(const MountTable *t)
{
    const Mount *root = NULL;

    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->mounts[i].target, "/") == 0)
            root = &t->mounts[i];
    return root;
}

bool fstype_is_local_block(const char *fstype)
{
    static const char *const types[] = {
            "ext2", "ext3",     "ext4",  "xfs",      "btrfs",    "f2fs",
            "vfat", "exfat",    "ntfs3", "erofs",    "squashfs", "iso9660",
            "udf",  "bcachefs", "jfs",   "reiserfs", "nilfs2",
    };

    for (size_t i = 0; i < ELEMENTSOF(types); i++)
        if (strcmp(fstype, types[i]) == 0)
            return true;
    return false;
}

bool path_is_below(const char *path, const char *prefix)
{
    size_t l = strlen(prefix);

    while (l > 0 && prefix[l - 1] == '/')
        l--;
    return strncmp(path, prefix, l) == 0 && (path[l] == 0 || path[l] == '/');
}

/* Returns true if another mount hides mount i. The other mount is either stacked on mount i, or it
 * has the same parent as mount i and its target lies above the target of mount i. In the second
 * case the other mount is the later one, because a later mount i would be a child of the other
 * mount. The order of the lines does not show which mount is later, because moving a mount does not
 * move its line. An initrd mounts /proc before the root and later moves it onto the root, but the
 * line of /proc still stands above that of the root. */
static bool is_hidden(const MountTable *t, size_t i, size_t except)
{
    const Mount *m = &t->mounts[i];

    for (size_t j = 0; j < t->n; j++) {
        const Mount *c = &t->mounts[j];

        if (j == i || j == except || !path_is_below(m->target, c->target))
            continue;
        if (c->parent == m->id ? strcmp(c->target, m->target) == 0
                               : c->parent == m->parent && strcmp(c->target, m->target) != 0)
            return true;
    }
    return false;
}

/* Returns true if the mount or one of its parents is hidden. The depth is bounded, in case parents
 * form a circle. */
static bool is_covered(const MountTable *t, size_t i)
{
    /* The mount from which the loop came. It is a child of mount i and does not hide that mount. */
    size_t from = i;

    for (size_t depth = 0; depth < t->n; depth++) {
        unsigned parent = t->mounts[i].parent;
        size_t k;

        if (is_hidden(t, i, from))
            return true;
        for (k = 0; k < t->n; k++)
            if (k != i && t->mounts[k].id == parent)
                break;
        if (k == t->n)
            return false; /* the root, or its parent is outside of this namespace */
        from = i;
        i = k;
    }
    return false;
}

static bool fstype_is_in_memory(const char *fstype)
{
    static const char *const types[] = {"tmpfs", "ramfs", "devtmpfs", "overlay"};

    for (size_t i = 0; i < ELEMENTSOF(types); i++)
        if (strcmp(fstype, types[i]) == 0)
            return true;
    return false;
}

/* Returns true if the mount is on `from`; NULL: on no mount of the table. */
static bool is_on(const MountTable *t, const Mount *m, const Mount *from)
{
    if (from)
        return m != from && m->parent == from->id;
    for (size_t i = 0; i < t->n; i++)
        if (&t->mounts[i] != m && t->mounts[i].id == m->parent)
            return false;
    return true;
}

/* Returns the mount on `from` that a lookup of the path enters first, or NULL. */
static const Mount *next_mount(const MountTable *t, const Mount *from, const char *path)
{
    const Mount *next = NULL;

    for (size_t i = 0; i < t->n; i++) {
        const Mount *m = &t->mounts[i];

        if (is_on(t, m, from) && path_is_below(path, m->target) &&
            (!next || strlen(m->target) < strlen(next->target)))
            next = m;
    }
    return next;
}

/* Returns true if the function is true of every mount on the way to the path, and if there is one.
 * Follows the lookup from mount to mount. Users may make a thousand mounts, one on another, so all
 * mounts must not be compared with each other for each mount on the way. */
static bool is_all_the_way(const MountTable *t, const char *path, bool (*is)(const char *fstype))
{
    const Mount *m = next_mount(t, NULL, path), *next;

    /* The number of steps is bounded, in case parents form a circle. */
    for (size_t i = 0; m && i < t->n; i++, m = next) {
        next = next_mount(t, m, path);
        if (next && strcmp(next->target, m->target) == 0)
            continue; /* `next` covers `m` */
        if (!is(m->fstype))
            return false;
        if (!next)
            return true;
    }
    return false;
}

const Mount *mount_table_find(const MountTable *t, const char *path)
{
    const Mount *m = next_mount(t, NULL, path), *next;

    /* The number of steps is bounded, in case parents form a circle. */
    for (size_t i = 0; m && i < t->n; i++, m = next) {
        next = next_mount(t, m, path);
        if (!next)
            return m;
    }
    return NULL;
}

bool fstype_is_local(const char *fstype)
{
    return fstype_is_local_block(fstype) || fstype_is_in_memory(fstype);
}

bool mount_table_path_is_local(const MountTable *t, const char *path)
{
    return is_all_the_way(t, path, fstype_is_local);
}

static bool fstype_hides_no_names(const char *fstype)
{
    return strcmp(fstype, "fuse") != 0 && strncmp(fstype, "fuse.", 5) != 0 &&
           strcmp(fstype, "ecryptfs") != 0;
}

bool mount_table_path_may_be_encrypted(const MountTable *t, const char *path)
{
    return !is_all_the_way(t, path, fstype_hides_no_names);
}

uint64_t mount_subvolume_id(const Mount *m)
{
    static const char key[] = "subvolid=";

    if (strcmp(m->fstype, "btrfs") != 0)
        return 0;
    for (const char *p = m->super_options; *p;) {
        size_t n = strcspn(p, ",");

        if (strncmp(p, key, sizeof(key) - 1) == 0) {
            uint64_t id = 0;

            for (p += sizeof(key) - 1; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(id, 10U, &id) ||
                    __builtin_add_overflow(id, (uint64_t)(*p - '0'), &id))
                    return 0;
            return *p == 0 || *p == ',' ? id : 0;
        }
        p += n + (p[n] == ',');
    }
    return 0;
}

static bool is_same_filesystem(const Mount *a, const Mount *b)
{
    return a->major == b->major && a->minor == b->minor &&
           mount_subvolume_id(a) == mount_subvolume_id(b);
}

bool mount_is_better(const Mount *a, const Mount *b)
{
    size_t x = strlen(a->root), y = strlen(b->root);

    return x != y ? x < y : strlen(a->target) < strlen(b->target);
}

int mount_table_select(const MountTable *t, const char *prefix, size_t **ret, size_t *ret_n)
{
    _cleanup_free_ size_t *chosen = NULL;
    size_t n = 0;

    chosen = reallocarray(NULL, t->n + 1, sizeof(size_t));
    if (!chosen)
        return -ENOMEM;
    for (size_t i = 0; i < t->n; i++) {
        const Mount *m = &t->mounts[i];
        size_t k;

        if (!fstype_is_local_block(m->fstype) || !path_is_below(m->target, prefix) ||
            is_covered(t, i))
            continue;
        for (k = 0; k < n; k++)
            if (is_same_filesystem(&t->mounts[chosen[k]], m))
                break;
        if (k == n)
            chosen[n++] = i;
        else if (mount_is_better(m, &t->mounts[chosen[k]]))
            chosen[k] = i;
    }
    *ret = TAKE_PTR(chosen);
    *ret_n = n;
    return 0;
}
