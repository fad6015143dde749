#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OSS-Fuzz's build.sh for headstart. OSS-Fuzz sets CC, CFLAGS, LIB_FUZZING_ENGINE and OUT; the image
# has the packages that tests/run lists. The programs run in another image without these packages,
# so the libraries of the programs are copied to $OUT/lib.

set -eu -o pipefail
cd "$(dirname "$0")/../.."
build=${WORK:-$PWD}/build-oss-fuzz

[[ -e $build/build.ninja ]] ||
    meson setup "$build" -Dfuzz=true -Dfuzz_engine="$LIB_FUZZING_ENGINE" -Dbuildtype=plain -Db_lundef=false \
        -Dc_link_args="-Wl,-rpath,\$ORIGIN/lib"
mapfile -t targets < <(for f in tests/fuzz/fuzz-*.c; do
    f=$(basename "$f" .c)
    [[ $f == fuzz-main ]] || echo "$f"
done)
ninja -C "$build" src/cli/headstart "${targets[@]/#/tests/fuzz/}"
tests/fuzz/make-corpus "$build" "$build/corpus"

mkdir -p "$OUT/lib"
for t in "${targets[@]}"; do
    cp "$build/tests/fuzz/$t" "$OUT/"
    # Copies all libraries except those of the C and C++ runtimes. The sanitizer's runtime and the
    # program must use the same ones, those of the system.
    # A target may need no other library.
    ldd "$build/tests/fuzz/$t" | awk '$2 == "=>" { print $3 }' |
        { grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*|libstdc\+\+|libgcc_s)\.so' || true; } |
        xargs -r cp --no-clobber --dereference --target-directory="$OUT/lib"
    python3 -m zipfile -c "$OUT/${t}_seed_corpus.zip" "$build/corpus/${t#fuzz-}"/*
done
