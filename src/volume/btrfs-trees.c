/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the nodes of trees as they are on the device, in the layout of linux/btrfs_tree.h. All of
 * it may be damaged or change meanwhile: a block counts only if its head says that it is the
 * expected node, and nothing outside of the block is read. */

#include "volume/btrfs-trees.h"

#include "base/ranges.h"
#include "device/block-device.h"

#include <endian.h>
#include <ext2fs/ext2fs.h>
#include <fcntl.h>
#include <linux/btrfs_tree.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define SUPERBLOCK_AT    65536
#define SUPERBLOCK_BYTES 4096U
#define MAGIC            "_BHRfS_M"
#define METADATA_UUID    0x400U /* an incompatible feature: nodes have metadata_uuid */
#define NODE_MAX         65536U
#define LEVELS           8U
#define CHUNKS_MAX       ((size_t)1 << 16)
#define NODES_MAX        2048U /* nodes in memory: 32 MB with nodes of 16 KiB */
#define VISITS_MAX \
    UINT64_C(1000000) /* of nodes and leaves: in a damaged tree many pointers may lead to one */

/* The superblock, as far as it is used. */
typedef struct Superblock {
    uint8_t checksum[32];
    uint8_t fsid[16];
    uint64_t place, flags;
    uint8_t magic[8];
    uint64_t generation, root, chunk_root;
    uint64_t unused0[6];
    uint32_t sector_size, node_size, unused2, stripe_size, n_system_chunks;
    uint64_t chunk_generation, compat, compat_ro, incompat;
    uint16_t checksum_type;
    uint8_t root_level, chunk_level, log_level;
    uint64_t device_id; /* the first field of dev_item */
    uint8_t unused3[90 + 256 + 16];
    uint8_t metadata_uuid[16];
    uint8_t unused4[224];
    uint8_t system_chunks[2048];
} __attribute__((packed)) Superblock;

_Static_assert(offsetof(Superblock, metadata_uuid) == 571, "as on the disk");
_Static_assert(offsetof(Superblock, system_chunks) == 811, "as on the disk");

/* The head of a node. */
typedef struct Head {
    uint8_t checksum[32];
    uint8_t fsid[16];
    uint64_t address, flags;
    uint8_t chunk_tree_uuid[16];
    uint64_t generation, owner;
    uint32_t n;
    uint8_t level;
} __attribute__((packed)) Head;

typedef struct Pointer {
    struct btrfs_disk_key key;
    uint64_t address, generation;
} __attribute__((packed)) Pointer;

typedef struct Item {
    struct btrfs_disk_key key;
    uint32_t offset, size;
} __attribute__((packed)) Item;

/* A part of the address space, and its place on this device. */
typedef struct Mapping {
    uint64_t address, length, place;
} Mapping;

typedef struct Node {
    UT_hash_handle hh;
    uint64_t address;
    bool oom;
    bool valid;
    uint8_t *block;
} Node;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

/* What a pointer says of its node. */
typedef struct NodeAddress {
    uint64_t address, generation;
    uint8_t level;
} NodeAddress;

struct BtrfsTrees {
    int fd;
    uint8_t fsid[16]; /* of nodes */
    uint64_t device_id;
    uint32_t node_size;
    Mapping *mappings;
    size_t n_mappings, allocated_mappings;
    Node *nodes;
    uint64_t n_visits;
    NodeAddress roots[_BTRFS_TREE_MAX];
};

/* --- keys ------------------------------------------------------------------------------------- */

static BtrfsKey key_of(const struct btrfs_disk_key *k)
{
    return (BtrfsKey){le64toh(k->objectid), k->type, le64toh(k->offset)};
}

static int compare_keys(const BtrfsKey *a, const BtrfsKey *b)
{
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

uint64_t btrfs_name_hash(const char *name, size_t length)
{
    return ext2fs_crc32c_le(~UINT32_C(1), (const unsigned char *)name, length);
}

/* --- chunks ----------------------------------------------------------------------------------- */

/* Returns the place of the address on this device, or PHYSICAL_UNKNOWN. */
static uint64_t place_of(const BtrfsTrees *t, uint64_t address)
{
    for (size_t i = 0; i < t->n_mappings; i++) {
        const Mapping *m = &t->mappings[i];

        uint64_t place;

        if (address >= m->address && address - m->address < m->length &&
            !__builtin_add_overflow(m->place, address - m->address, &place) &&
            place <= INT64_MAX - NODE_MAX)
            return place;
    }
    return PHYSICAL_UNKNOWN;
}

/* Adds a chunk that may have nodes, and whose copies are whole: single, DUP or RAID1. `size` is the
 * size of the item. Returns 0 or -ENOMEM. */
static int add_chunk(BtrfsTrees *t, uint64_t address, const struct btrfs_chunk *c, size_t size)
{
    const struct btrfs_stripe *stripes = &c->stripe;
    uint16_t n;

    if (size < sizeof(*c))
        return 0;
    n = le16toh(c->num_stripes);
    if (size < sizeof(*c) + (n > 0 ? n - 1U : 0U) * sizeof(*stripes) ||
        (le64toh(c->type) &
         (BTRFS_BLOCK_GROUP_RAID0 | BTRFS_BLOCK_GROUP_RAID10 | BTRFS_BLOCK_GROUP_RAID56_MASK)) ||
        !(le64toh(c->type) & (BTRFS_BLOCK_GROUP_METADATA | BTRFS_BLOCK_GROUP_SYSTEM)) ||
        t->n_mappings >= CHUNKS_MAX)
        return 0;
    for (uint16_t i = 0; i < n; i++) {
        if (le64toh(stripes[i].devid) != t->device_id)
            continue;
        if (grow_array(&t->mappings, &t->allocated_mappings, t->n_mappings + 1, sizeof(Mapping)) <
            0)
            return -ENOMEM;
        t->mappings[t->n_mappings++] =
                (Mapping){address, le64toh(c->length), le64toh(stripes[i].offset)};
        break;
    }
    return 0;
}

/* Adds the chunks of which the superblock has copies: the tree of chunks lies in them. */
static int add_system_chunks(BtrfsTrees *t, const Superblock *s)
{
    size_t at = 0, n = MIN(le32toh(s->n_system_chunks), sizeof(s->system_chunks));

    while (n - at >= sizeof(struct btrfs_disk_key) + sizeof(struct btrfs_chunk)) {
        struct btrfs_disk_key key;
        const uint8_t *chunk = s->system_chunks + at + sizeof(key);
        size_t size;
        uint16_t n_stripes;

        memcpy(&key, s->system_chunks + at, sizeof(key));
        memcpy(&n_stripes, chunk + offsetof(struct btrfs_chunk, num_stripes), sizeof(n_stripes));
        size = sizeof(struct btrfs_chunk) +
               (le16toh(n_stripes) > 0 ? le16toh(n_stripes) - 1U : 0U) *
                       sizeof(struct btrfs_stripe);
        if (size > n - at - sizeof(key))
            return -EMEDIUMTYPE;
        CHECK(add_chunk(t, le64toh(key.offset), (const struct btrfs_chunk *)chunk, size));
        at += sizeof(key) + size;
    }
    return 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static bool is_expected(const BtrfsTrees *t, const Head *h, const NodeAddress *expected)
{
    size_t entry = expected->level > 0 ? sizeof(Pointer) : sizeof(Item);

    return memcmp(h->fsid, t->fsid, sizeof(h->fsid)) == 0 &&
           le64toh(h->address) == expected->address &&
           le64toh(h->generation) == expected->generation && h->level == expected->level &&
           le32toh(h->n) <= (t->node_size - sizeof(Head)) / entry;
}

/* Reads a node, or finds it in memory. Returns 1, 0 (it is not on this device, cannot be read, or
 * is not the expected one, or too many were read), or -ENOMEM. */
static int read_node(BtrfsTrees *t, const NodeAddress *expected, const Head **ret)
{
    Node *n;

    if (t->n_visits++ >= VISITS_MAX)
        return 0;
    HASH_FIND(hh, t->nodes, &expected->address, sizeof(expected->address), n);
    if (!n) {
        uint64_t place = place_of(t, expected->address);
        void *block = NULL;

        if (place == PHYSICAL_UNKNOWN || HASH_COUNT(t->nodes) >= NODES_MAX)
            return 0;
        n = calloc(1, sizeof(*n));
        if (!n || posix_memalign(&block, SUPERBLOCK_BYTES, t->node_size) != 0) {
            free(n);
            return -ENOMEM;
        }
        n->address = expected->address;
        n->block = block;
        n->valid = pread(t->fd, block, t->node_size, (off_t)place) == (ssize_t)t->node_size;
        HASH_ADD(hh, t->nodes, address, sizeof(n->address), n);
        if (n->oom) {
            free(block);
            free(n);
            return -ENOMEM;
        }
    }
    *ret = (const Head *)n->block;
    return n->valid && is_expected(t, *ret, expected);
}

static NodeAddress child_of(const NodeAddress *node, const Pointer *p)
{
    return (NodeAddress){le64toh(p->address), le64toh(p->generation), (uint8_t)(node->level - 1)};
}

/* Returns the index of the last pointer whose key is not greater than the key, or 0. */
static uint32_t find_pointer(const Pointer *pointers, uint32_t n, const BtrfsKey *key)
{
    uint32_t low = 0, high = n;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        const BtrfsKey k = key_of(&pointers[middle].key);

        if (compare_keys(&k, key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

typedef struct Walk {
    BtrfsTrees *t;
    const BtrfsKey *from, *to;
    btrfs_visit_t visit;
    void *arg;
} Walk;

static int visit_leaf(const Walk *w, const NodeAddress *leaf, const BtrfsKey *first)
{
    const BtrfsLeaf l = {place_of(w->t, leaf->address), w->t->node_size, *first};

    return w->t->n_visits++ >= VISITS_MAX || l.place == PHYSICAL_UNKNOWN ? 0 : w->visit(w->arg, &l);
}

/* Visits the leaves below a node whose first key is `first`. A level of a child is one less than
 * the level of its node, so that the depth is bounded. */
static int walk(const Walk *w, const NodeAddress *node, const BtrfsKey *first)
{
    const Pointer *pointers;
    const Head *h;
    int r;

    if (node->level == 0)
        return visit_leaf(w, node, first);
    r = read_node(w->t, node, &h);
    if (r <= 0)
        return r;
    pointers = (const Pointer *)(h + 1);
    for (uint32_t n = le32toh(h->n), i = find_pointer(pointers, n, w->from); i < n; i++) {
        const BtrfsKey key = key_of(&pointers[i].key);
        const NodeAddress child = child_of(node, &pointers[i]);

        if (compare_keys(&key, w->to) > 0)
            break;
        CHECK(walk(w, &child, &key));
    }
    return 0;
}

int btrfs_trees_visit(BtrfsTrees *t, BtrfsTree tree, const BtrfsKey *from, const BtrfsKey *to,
                      btrfs_visit_t visit, void *arg)
{
    const Walk w = {t, from, to, visit, arg};
    const BtrfsKey zero = {0};

    return t->roots[tree].address == 0 ? 0 : walk(&w, &t->roots[tree], &zero);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Calls `take` for each item of the leaves below the node, with keys from `from` to `to`. */
typedef int (*take_t)(BtrfsTrees *t, const BtrfsKey *key, const uint8_t *data, size_t size);

static int read_items(BtrfsTrees *t, const NodeAddress *node, const BtrfsKey *from,
                      const BtrfsKey *to, take_t take)
{
    const Head *h;
    const Item *items;
    int r = read_node(t, node, &h);

    if (r <= 0)
        return r;
    if (node->level > 0) {
        const Pointer *pointers = (const Pointer *)(h + 1);

        for (uint32_t n = le32toh(h->n), i = find_pointer(pointers, n, from); i < n; i++) {
            const BtrfsKey key = key_of(&pointers[i].key);
            const NodeAddress child = child_of(node, &pointers[i]);

            if (compare_keys(&key, to) > 0)
                break;
            CHECK(read_items(t, &child, from, to, take));
        }
        return 0;
    }
    items = (const Item *)(h + 1);
    for (uint32_t i = 0; i < le32toh(h->n); i++) {
        const BtrfsKey key = key_of(&items[i].key);
        uint64_t offset = sizeof(Head) + (uint64_t)le32toh(items[i].offset);
        uint32_t size = le32toh(items[i].size);

        if (compare_keys(&key, from) >= 0 && compare_keys(&key, to) <= 0 &&
            offset <= t->node_size && size <= t->node_size - offset)
            CHECK(take(t, &key, (const uint8_t *)h + offset, size));
    }
    return 0;
}

static int take_chunk(BtrfsTrees *t, const BtrfsKey *key, const uint8_t *data, size_t size)
{
    return add_chunk(t, key->offset, (const struct btrfs_chunk *)data, size);
}

/* Notes the root of a tree: of the checksums, or of the subvolume. */
static int take_root(BtrfsTrees *t, const BtrfsKey *key, const uint8_t *data, size_t size)
{
    struct btrfs_root_item item;
    bool checksums = key->object == BTRFS_CSUM_TREE_OBJECTID;

    if (size < offsetof(struct btrfs_root_item, generation_v2))
        return 0;
    memset(&item, 0, sizeof(item));
    memcpy(&item, data, MIN(size, sizeof(item)));
    if (item.level < LEVELS)
        t->roots[checksums ? BTRFS_TREE_CHECKSUMS : BTRFS_TREE_FILES] =
                (NodeAddress){le64toh(item.bytenr), le64toh(item.generation), item.level};
    return 0;
}

static int read_superblock(BtrfsTrees *t, Superblock *ret)
{
    void *block = NULL;
    int r = 0;

    if (posix_memalign(&block, SUPERBLOCK_BYTES, SUPERBLOCK_BYTES) != 0)
        return -ENOMEM;
    if (pread(t->fd, block, SUPERBLOCK_BYTES, SUPERBLOCK_AT) != SUPERBLOCK_BYTES)
        r = -EMEDIUMTYPE;
    memcpy(ret, block, sizeof(*ret));
    free(block);
    if (r < 0 || memcmp(ret->magic, MAGIC, sizeof(ret->magic)) != 0)
        return -EMEDIUMTYPE;
    t->node_size = le32toh(ret->node_size);
    if (t->node_size < SUPERBLOCK_BYTES || t->node_size > NODE_MAX ||
        (t->node_size & (t->node_size - 1)) != 0 || ret->root_level >= LEVELS ||
        ret->chunk_level >= LEVELS)
        return -EMEDIUMTYPE;
    memcpy(t->fsid, le64toh(ret->incompat) & METADATA_UUID ? ret->metadata_uuid : ret->fsid,
           sizeof(t->fsid));
    t->device_id = le64toh(ret->device_id);
    return 0;
}

static int read_roots(BtrfsTrees *t, const Superblock *s, uint64_t subvolume_id)
{
    const NodeAddress chunks = {le64toh(s->chunk_root), le64toh(s->chunk_generation),
                                s->chunk_level};
    const NodeAddress roots = {le64toh(s->root), le64toh(s->generation), s->root_level};
    const uint64_t ids[] = {subvolume_id ? subvolume_id : BTRFS_FS_TREE_OBJECTID,
                            BTRFS_CSUM_TREE_OBJECTID};
    const BtrfsKey first_chunk = {BTRFS_FIRST_CHUNK_TREE_OBJECTID, BTRFS_CHUNK_ITEM_KEY, 0},
                   last_chunk = {BTRFS_FIRST_CHUNK_TREE_OBJECTID, BTRFS_CHUNK_ITEM_KEY, UINT64_MAX};

    CHECK(add_system_chunks(t, s));
    CHECK(read_items(t, &chunks, &first_chunk, &last_chunk, take_chunk));
    for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
        const BtrfsKey first = {ids[i], BTRFS_ROOT_ITEM_KEY, 0},
                       last = {ids[i], BTRFS_ROOT_ITEM_KEY, UINT64_MAX};

        CHECK(read_items(t, &roots, &first, &last, take_root));
    }
    return t->roots[BTRFS_TREE_FILES].address == 0 ? -ENOENT : 0;
}

int btrfs_trees_open(int device_fd, uint64_t subvolume_id, BtrfsTrees **ret)
{
    _cleanup_(btrfs_trees_freep) BtrfsTrees *t = calloc(1, sizeof(*t));
    Superblock s;
    int flags = fcntl(device_fd, F_GETFL);

    if (!t)
        return -ENOMEM;
    t->fd = fcntl(device_fd, F_DUPFD_CLOEXEC, 3);
    if (t->fd < 0)
        return -errno;
    /* The filesystem does not write through the page cache of its device. */
    if (flags >= 0)
        (void)fcntl(device_fd, F_SETFL, flags | O_DIRECT);
    CHECK(read_superblock(t, &s));
    CHECK(read_roots(t, &s, subvolume_id));
    *ret = TAKE_PTR(t);
    return 0;
}

int btrfs_trees_open_volume(const Volume *v, BtrfsTrees **ret)
{
    _cleanup_close_ int fd = -EBADF;

    if (volume_is_foreign(v))
        return -EPERM;
    fd = block_device_open(v->block_dev);
    return fd < 0 ? fd : btrfs_trees_open(fd, v->subvolume_id, ret);
}

BtrfsTrees *btrfs_trees_free(BtrfsTrees *t)
{
    Node *n, *next;

    if (!t)
        return NULL;
    HASH_ITER (hh, t->nodes, n, next) {
        HASH_DEL(t->nodes, n);
        free(n->block);
        free(n);
    }
    if (t->fd >= 0)
        close(t->fd);
    free(t->mappings);
    free(t);
    return NULL;
}
