/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A pack: the validating reader, then all computations of replay on it. Each input is read
 * unchanged, and again with corrected size and checksum, so that mutations reach the later
 * checks. */

#include "fuzz.h"

#include "base/parse.h"
#include "execute/operations.h"
#include "pack/checksum.h"
#include "pack/pack.h"

#include <string.h>

static void use(const Pack *p)
{
    _cleanup_free_ VolumeFacts *facts = NULL;
    size_t n_volumes = le32toh(p->header->n_volumes);

    (void)pack_is_control(p, "0123456789abcdef0123456789abcdef");
    facts = calloc(n_volumes + 1, sizeof(*facts));
    FUZZ_CHECK(facts);
    for (size_t i = 0; i < n_volumes; i++) {
        facts[i] = (VolumeFacts){
                .mounted = i % 4 != 1,
                .device = i % 4 != 2,
                .items = i % 4 != 3,
                .disk = i % 3,
                .disk_offset = i << 20,
        };
        (void)strlen(pack_string(p, p->volumes[i].fstype));
        (void)strlen(pack_string(p, p->volumes[i].mountpoint));
    }
    for (size_t i = 0; i < le32toh(p->header->n_files); i++)
        FUZZ_CHECK(pack_path_is_safe(pack_string(p, p->files[i].path)));
    for (Policy policy = 0; policy < _POLICY_MAX; policy++) {
        _cleanup_operation_list_ OperationList list = {0};

        if (operations_from_pack(p, facts, policy, &list) < 0)
            continue;
        for (size_t i = 0; i < list.n; i++) {
            uint64_t offset, length, end;

            operation_range(p, &list.operations[i], &offset, &length);
            FUZZ_CHECK(!__builtin_add_overflow(offset, length, &end));
        }
        for (size_t i = 0; i < list.n_streams; i++) {
            const Stream *s = &list.streams[i];

            FUZZ_CHECK(s->first <= list.n && s->n <= list.n - s->first);
            FUZZ_CHECK(operations_sort(p, facts, replay_order_of(p, policy),
                                       list.operations + s->first, s->n) >= 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ uint64_t *copy = malloc(size + sizeof(uint64_t));
    const char *reason = NULL;
    Pack p;
    int r;

    FUZZ_CHECK(copy);
    memcpy(copy, data, size);
    r = pack_open(copy, size, &p, &reason);
    FUZZ_CHECK(r >= 0 || reason);
    if (size >= sizeof(PackHeader)) {
        PackHeader *h = (PackHeader *)copy;

        h->file_size = htole64(size);
        h->checksum = htole64(pack_checksum(copy, size));
        r = pack_open(copy, size, &p, &reason);
    }
    fuzz_count(r >= 0);
    if (r >= 0)
        use(&p);
    return 0;
}

/* --- mutation --------------------------------------------------------------------------------- */

/* Changes one field in place, so that all other fields keep their positions, or changes bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    FuzzRandom random = {seed}, *r = &random;
    size_t width = (size_t)1 << fuzz_below(r, 4), at = fuzz_below(r, size / width) * width;
    uint64_t value = 0;

    if (size < sizeof(PackHeader) || fuzz_below(r, 4) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    memcpy(&value, data + at, width);
    switch (fuzz_below(r, 4)) {
    case 0:
        value += fuzz_below(r, 9) - 4;
        break;
    case 1:
        value = fuzz_number(r);
        break;
    case 2:
        value ^= UINT64_C(1) << fuzz_below(r, 8 * width);
        break;
    default: /* the value of another field */
        memcpy(&value, data + fuzz_below(r, size / width) * width, width);
    }
    memcpy(data + at, &value, width);
    return size;
}
