# SPDX-License-Identifier: LGPL-2.1-or-later
# Every build runs the fuzz targets on their corpora and on some mutations of the inputs
# (tests/fuzz/README.md).

load helpers

setup() {
    hs_setup
}

# run_target NAME MUTATIONS: runs the corpus, and that many mutations of each input.
run_target() {
    local target=$HS_BUILD/tests/fuzz/fuzz-$1
    need_binary "$target"
    need_command mke2fs
    "$HS_SOURCE/tests/fuzz/make-corpus" "$HS_BUILD" "$HS_TMP/corpus" "$1"
    "$target" --mutations="$2" --seed=1 "$HS_TMP/corpus/$1"
}

@test "fuzz: packs" {
    run_target pack 500
}

@test "fuzz: traces" {
    run_target trace 10
}

@test "fuzz: models" {
    run_target model 5
}

@test "fuzz: histories" {
    run_target history 50
}

@test "fuzz: compressed files" {
    run_target gzip 50
}

@test "fuzz: configuration files" {
    run_target config 20
}

@test "fuzz: buffers of fanotify" {
    run_target fanotify 200
}

@test "fuzz: messages of the proc connector" {
    run_target proc-connector 100
}

@test "fuzz: mountinfo" {
    run_target mountinfo 200
}

@test "fuzz: pressure stall information" {
    run_target pressure 20
}

@test "fuzz: images of ext2, ext3 and ext4" {
    run_target ext2 50
}

@test "fuzz: trees of btrfs" {
    run_target btrfs 200
}
