# SPDX-License-Identifier: LGPL-2.1-or-later
# Checks on sources and binaries whether the rules of docs/architecture.md are followed.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    cd "$HS_SOURCE" || return
}

# Prints "folder may-include…" for every row of the table of folders in docs/architecture.md.
layers() {
    awk -F' *[|] *' '
        $2 ~ /^`src\/[a-z]+`$/ {
            folder = $2
            gsub(/`|src\//, "", folder)
            gsub(/[`,]|src\//, " ", $4)
            print folder, $4
        }' docs/architecture.md
}

# Sets may_include: folder -> the folders that it may include, separated by spaces.
read_layers() {
    local folder rest
    declare -gA may_include=()
    while read -r folder rest; do
        # shellcheck disable=SC2086 # words
        may_include[$folder]=$(echo $rest)
    done < <(layers)
}

# Prints "folder included-folder file:line" for every include with a folder
includes() {
    grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[a-z0-9-]+/' src/*/*.[ch] |
        sed -E 's|^src/([^/]+)/([^:]+):([0-9]+):.*"([a-z0-9-]+)/.*|\1 \4 src/\1/\2:\3|'
}

@test "the table of folders in docs/architecture.md contains every folder, and no circle" {
    local folder other bad=0
    read_layers
    diff <(printf '%s\n' "${!may_include[@]}" | sort) <(basename -a src/*/ | sort)
    for folder in "${!may_include[@]}"; do
        for other in ${may_include[$folder]}; do
            [[ -v may_include[$other] ]] || {
                echo "$folder may include $other, which is no folder"
                bad=1
            }
        done
    done
    [ "$bad" -eq 0 ]
    run --separate-stderr tsort < <(layers | awk '{ for (i = 2; i <= NF; i++) print $1, $i }')
    echo "$stderr"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

@test "includes follow the layers" {
    local from to where bad=0
    read_layers
    while read -r from to where; do
        [[ $from == "$to" ]] && continue
        [[ " ${may_include[$from]} " == *" $to "* ]] || {
            echo "$where: $from must not include $to"
            bad=1
        }
    done < <(includes)
    # Each folder that the table names is really included.
    while read -r from to; do
        includes | grep -q "^$from $to " || {
            echo "$from need not include $to"
            bad=1
        }
    done < <(layers | awk '{ for (i = 2; i <= NF; i++) print $1, $i }')
    # The test has really examined something.
    [ "$(includes | wc -l)" -gt 20 ]
    [ "$bad" -eq 0 ]
}

@test "every include of headstart's headers names the folder" {
    run grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[^/"]+"' src/*/*.[ch]
    # This file is generated at the top of the build directory.
    run grep -v '"config-paths.h"' <<<"$output"
    echo "$output"
    [ -z "$output" ]
}

@test "folders do not include one another in circles" {
    # tsort prints a loop to standard error and fails.
    run --separate-stderr tsort < <(includes | awk '$1 != $2 { print $1, $2 }')
    echo "$stderr"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

@test "files do not include or call one another in circles" {
    need_command nm python3
    run -0 tests/circles "$HS_BUILD"
    echo "$output"
    [ -z "$output" ]
}

@test "the search for circles finds one" {
    need_command python3
    mkdir -p "$HS_TMP"/{tests,src/x,build}
    cp tests/circles "$HS_TMP/tests/"
    echo 'int b(void); int a(void) { return b(); }' >"$HS_TMP/src/x/a.c"
    echo 'int c(void); int b(void) { return c(); }' >"$HS_TMP/src/x/b.c"
    echo 'int c(void) { return 0; }' >"$HS_TMP/src/x/c.c"
    local f
    for f in a b c; do
        ${CC:-cc} -c -o "$HS_TMP/build/$f.o" "$HS_TMP/src/x/$f.c"
        jq -n --arg d "$HS_TMP/build" --arg f "$f" '{directory: $d, file: "../src/x/\($f).c", output: "\($f).o"}'
    done | jq -s . >"$HS_TMP/build/compile_commands.json"
    run -0 "$HS_TMP/tests/circles" "$HS_TMP/build"
    [ -z "$output" ]
    # c includes a, so the three now form a circle.
    echo '#include "x/a.h"' >"$HS_TMP/src/x/c.h"
    run -0 "$HS_TMP/tests/circles" "$HS_TMP/build"
    [ "$output" = "x: a b c" ]
}

# allowed_symbol NAME: checks that the pure libraries may call this function. They may call libc's
# memory, string, conversion and formatting functions, libm and json-c.
allowed_symbol() {
    local -r libc='(__)?(mem(cpy|move|set|cmp|chr|rchr|mem|pcpy)|str(n?cpy|n?cat|n?cmp|n?casecmp|verscmp|n?len|r?chr|chrnul|str|spn|cspn|pbrk|sep|tok_r|n?dup|error|errordesc_np)|st[pr]n?cpy|rawmemchr)(_chk)?'
    local -r stdlib='malloc|calloc|realloc|reallocarray|free|qsort(_r)?|bsearch|abort|strto(u?ll?|d|ld|f)|(__)?isoc23_strto(u?ll?|d|ld|f)|__errno_location|abs|labs'
    local -r ctype='__ctype_(b|tolower|toupper)_loc|is(digit|xdigit|space|alpha|alnum|upper|lower|print)|to(lower|upper)'
    local -r format='(__)?v?(sn?|as)printf(_chk)?|(__)?isoc(99|23)_v?sscanf|v?sscanf'
    local -r libm='(a?(sin|cos|tan)h?|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|sqrt|cbrt|floor|ceil|round|rint|lround|llround|fabs|fmod|fmin|fmax|ldexp|frexp|modf|trunc|nearbyint|hypot|tgamma|lgamma|isnan|isinf|__isnan|__isinf|__finite)[fl]?'
    local -r json='(json_(object|tokener|c|util)|array_list|printbuf|lh_)[a-z0-9_]*|sprintbuf'
    # Symbols that the compiler itself adds: stack protector, assert, soft arithmetic, position
    # independence.
    local -r compiler='__stack_chk_fail|__assert_fail|__(u?div|u?mod|mul)[dt]i3|__popcount.i2|_GLOBAL_OFFSET_TABLE_|__sanitizer_.*|__(asan|ubsan|gcov|llvm)_.*'
    [[ $1 =~ ^($libc|$stdlib|$ctype|$format|$libm|$json|$compiler)$ ]]
}

# check_purity LIBRARY CORE: checks every symbol that LIBRARY needs. The symbol must be allowed, or
# LIBRARY or CORE must define it.
check_purity() {
    local symbol bad=0 n=0
    [ -e "$1" ]
    nm --defined-only --extern-only "$1" "$2" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$HS_TMP/defined"
    nm --undefined-only "$1" 2>/dev/null | awk '$1 == "U" || $1 == "w" { print $2 }' | sort -u >"$HS_TMP/undefined"
    while read -r symbol; do
        ((++n))
        allowed_symbol "$symbol" || {
            echo "not pure: $symbol, in $(nm -A --undefined-only "$1" 2>/dev/null |
                awk -v s="$symbol" '$NF == s { sub(/^.*\.a:/, "", $1); print $1 }' | tr '\n' ' ')"
            bad=1
        }
    done < <(comm -23 "$HS_TMP/undefined" "$HS_TMP/defined")
    [ "$n" -gt 5 ]
    [ "$bad" -eq 0 ]
}

@test "the pure libraries call nothing but memory, strings, libm and json-c" {
    local core=$HS_BUILD/src/libheadstart-core.a
    need_command nm
    check_purity "$core" "$core"
    check_purity "$HS_BUILD/src/evaluate/libheadstart-evaluate.a" "$core"
    check_purity "$HS_BUILD/src/report/libheadstart-report.a" "$core"
}

@test "the test for purity would notice a system call, a clock, a stream, the environment" {
    local s
    for s in open read write ioctl clock_gettime getenv printf fprintf fopen stderr stdout time rand \
        getpid mmap syscall puts perror environ openat opendir usleep; do
        ! allowed_symbol "$s" || {
            echo "allowed: $s"
            return 1
        }
    done
}

@test "the daemon, the command and their libraries contain nothing of the evaluation" {
    need_command nm
    local evaluation=$HS_BUILD/src/evaluate/libheadstart-evaluate.a f bad=0
    need_binary "$HEADSTARTD" "$HEADSTART" "$HEADSTART_REPLAY"
    [ -e "$evaluation" ]
    nm --defined-only --extern-only "$evaluation" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$HS_TMP/evaluation"
    [ "$(wc -l <"$HS_TMP/evaluation")" -gt 20 ]
    for f in "$HEADSTARTD" "$HEADSTART" "$HEADSTART_REPLAY" "$HS_BUILD"/src/libheadstart-*.a; do
        nm --defined-only "$f" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$HS_TMP/symbols"
        [ "$(wc -l <"$HS_TMP/symbols")" -gt 20 ]
        comm -12 "$HS_TMP/evaluation" "$HS_TMP/symbols" >"$HS_TMP/both"
        [ -s "$HS_TMP/both" ] || continue
        echo "$f contains: $(tr '\n' ' ' <"$HS_TMP/both")"
        bad=1
    done
    [ "$bad" -eq 0 ]
}

# Prints the libraries that a program loads, without their versions, in the order in which the
# loader searches them.
libraries_of() {
    readelf --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\.so\..*\]/\1/p' | tr '\n' ' '
}

@test "headstart-replay and headstart-init need libc alone" {
    local program
    for program in "$HEADSTART_REPLAY" "$HEADSTART_INIT"; do
        need_command readelf
        need_binary "$program"
        run libraries_of "$program"
        echo "$program: $output"
        [ -z "$output" ] || [ "$output" = "libc " ]
    done
}

@test "headstartd needs no library that only the command uses, and searches libc first" {
    local library
    need_command readelf
    need_binary "$HEADSTARTD"
    run libraries_of "$HEADSTARTD"
    echo "$output"
    [[ $output == "libc "* ]]
    # shellcheck disable=SC2154 # set by run
    for library in $output; do
        [[ " libc libm libsystemd libjson-c libblkid libext2fs libinih libz " == *" $library "* ]]
    done
}

@test "headstart-replay maps nothing but itself, ld.so, libc and the vdso" {
    need_command strace
    need_binary "$HEADSTART_REPLAY" "$HS_BUILD/tests/tools/tool-mkpack"
    "$HS_BUILD/tests/tools/tool-mkpack" "$HS_TMP/empty.pack" </dev/null
    strace -f -o "$HS_TMP/strace" "$HEADSTART_REPLAY" "$HS_TMP/empty.pack"
    # Every mapping of a file needs an open, so opens are counted. headstart-replay also opens the pack.
    run sed -n 's/.* open[a-z0-9]*(\([^"]*\)"\([^"]*\)".* = [0-9]*$/\2/p' "$HS_TMP/strace"
    echo "$output"
    [ "$(grep -cvE '/ld\.so\.(cache|preload)$|/libc\.so\.6$|/headstart-replay$|^/proc/|/empty\.pack$' <<<"$output")" -eq 0 ]
    [ "$(grep -cE '/libc\.so\.6$' <<<"$output")" -le 1 ] # 0 if headstart-replay is linked statically
}

@test "no function has over 60 lines or 20 branches" {
    need_command python3
    run tests/long-functions
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    # The search finds an example: main() of headstart-replay is longer than ten lines.
    run tests/long-functions --lines 10 src/replay/main.c
    [ "$status" -eq 1 ]
    [[ $output =~ src/replay/main\.c:[0-9]+:\ main:\ [0-9]+\ lines ]]
}

# full_check LINE…: runs tests/full --check of the scratch repository, which must print these lines.
full_check() {
    run "$HS_TMP/repository/tests/full" --check
    [ "$output" = "$(IFS=$'\n' && echo "$*")" ] || {
        echo "$output"
        false
    }
    [ "$status" -eq $(($# > 0)) ]
}

# row STEP DATE RESULT: replaces the row of the step.
row() {
    sed -i "s/^$1 .*/$1 0123456789ab $2 1 $3 text/" "$HS_TMP/repository/tests/full-result"
}

# commits N [FILE]: adds N commits to the scratch repository. With FILE, each has the content of the
# file as tests/full-result.
commits() {
    local i ref
    ref=$(git -C "$HS_TMP/repository" rev-parse --verify --quiet main) || true
    for ((i = 1; i <= $1; i++)); do
        printf 'commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 0\n\n' "$((1700000000 + i))"
        [[ -z $ref || $i -gt 1 ]] || printf 'from %s\n' "$ref"
        [ -z "${2:-}" ] || printf 'M 100644 inline tests/full-result\ndata %d\n%s\n' "$(stat -c %s "$2")" "$(<"$2")"
    done | git -C "$HS_TMP/repository" fast-import --quiet
}

@test "the results of tests/full must be complete, passed and recent" {
    need_command git
    local today step result repository=$HS_TMP/repository
    local -a steps
    # Neither the variables of a hook nor the configuration of the user may lead to another repository.
    unset "${!GIT_@}"
    today=$(date +%F)
    mkdir -p "$repository/tests"
    cp tests/full "$repository/tests"
    result=$repository/tests/full-result
    mapfile -t steps < <("$repository/tests/full" --check | sed -n 's/^tests\/full: \(.*\) was never run$/\1/p')
    [ ${#steps[@]} -ge 10 ]
    git -C "$repository" init --quiet --initial-branch=main
    for step in "${steps[@]}"; do
        echo "$step 0123456789ab $today 1 passed text"
    done >"$result"
    commits 1 "$result"
    full_check
    row kill "$(date -d '62 days ago' +%F)" passed
    full_check "tests/full: kill ran on $(date -d '62 days ago' +%F), more than 60 days ago"
    row kill "$today" failed
    full_check "tests/full: kill failed"
    sed -i '/^kill /d' "$result"
    full_check "tests/full: kill was never run"

    # The line of kill is newer than the others by one commit.
    echo "kill 0123456789ab $today 2 passed text" >>"$result"
    commits 1 "$result"
    commits 399
    full_check
    commits 1
    mapfile -t steps < <(printf '%s\n' "${steps[@]}" | grep -vx kill)
    steps=("${steps[@]/%/ is 401 commits behind}")
    full_check "${steps[@]/#/tests\/full: }"
    # A line that is not committed is new.
    sed -i 's/ 1 passed text$/ 3 passed text/' "$result"
    full_check

    # The history of a shallow clone is cut. A source package has none, even below another repository.
    git -C "$repository" show main:tests/full-result >"$result"
    git -C "$repository" rev-parse main~5 >"$repository/.git/shallow"
    full_check
    rm -rf "$repository/.git"
    git init --quiet "$HS_TMP"
    full_check
}

# full_step STATUS TAP-LINE…: runs tests/full booted of the scratch repository with a bats that prints these lines.
# The step must end with that status.
full_step() {
    local expected=$1
    shift
    printf '#!/bin/sh\ncat <<"EOF"\n%s\nEOF\n' "$(IFS=$'\n' && echo "$*")" >"$HS_TMP/bin/bats"
    PATH=$HS_TMP/bin:$PATH run "$HS_TMP/repository/tests/full" booted
    echo "$output"
    [ "$status" -eq "$expected" ]
}

@test "a step of tests/full with a skipped test has not passed" {
    need_command git
    unset "${!GIT_@}"
    local result=$HS_TMP/repository/tests/full-result
    mkdir -p "$HS_TMP/repository/tests" "$HS_TMP/bin"
    cp tests/full "$HS_TMP/repository/tests"
    git -C "$HS_TMP/repository" init --quiet --initial-branch=main
    commits 1
    touch "$HS_TMP/bin/bats" && chmod +x "$HS_TMP/bin/bats"
    full_step 0 1..2 "ok 1 one" "ok 2 other"
    grep -q '^booted .* passed ok 2 other$' "$result"
    full_step 1 1..2 "ok 1 one # skip not built: headstart" "ok 2 other"
    grep -q '^booted .* failed ok 2 other$' "$result"
    full_step 1 1..2 "ok 1 one # skip not built: headstart" "ok 2 other # skip not built: headstart"
    grep -q '^booted .* failed ok 2 other # skip' "$result"
}

@test "each hop of docs/flows.md is a function of the file that it names, and no flow has one twice" {
    local flow function file bad=0 n=0
    # FLOW FUNCTION FILE for each hop; FLOW is the number of the section
    while read -r flow function file; do
        ((++n))
        grep -qE "^[A-Za-z_].*\b$function\(" "src/$file" || {
            echo "flow $flow: no function $function in src/$file"
            bad=1
        }
    done < <(awk -F' *[|] *' '
        /^## / { ++flow }
        $2 ~ /^[0-9]+$/ {
            gsub(/`/, "")
            sub(/ .*/, "", $3)
            print flow, $3, $4
            if (seen[flow, $3]++)
                print flow, $3, "twice"
        }' docs/flows.md)
    [ "$n" -gt 40 ]
    [ "$bad" -eq 0 ]
}

@test "no function is there for tests alone" {
    need_command python3
    run -0 tests/unused-functions
    [ -z "$output" ]
    # The search finds functions that no source uses. Comments and strings do not count as uses, and
    # _cleanup_(a_freep) counts as a use of a_free().
    mkdir -p "$HS_TMP/src/x"
    cat >"$HS_TMP/src/x/a.h" <<'END'
int a_used(int x);
const char *a_unused(const struct A *a, size_t n,
                     size_t *ret); /* a_used() */
struct A *a_free(struct A *a);
DEFINE_CLEANUP(struct A *, a_free);
END
    printf '%s\n' '#include "x/a.h"' '/* a_unused() */' 'const char *a_unused(const struct A *a, size_t n,' \
        '                     size_t *ret)' '{' '    return "a_unused";' '}' 'int a_used(int x)' '{' \
        '    _cleanup_(a_freep) struct A *a = NULL;' '    return a ? a_used(x) : 0;' '}' \
        'struct A *a_free(struct A *a)' '{' '    return NULL;' '}' >"$HS_TMP/src/x/a.c"
    run -1 tests/unused-functions "$HS_TMP"
    [ "$output" = "src/x/a.h: a_unused" ]
}

@test "no source file is over about 500 lines without saying why" {
    local f bad=0
    for f in src/*/*.[ch]; do
        (($(wc -l <"$f") <= 600)) && continue
        # The head of the file states the reason.
        head -n 30 "$f" | grep -qiE 'one file|long|lines' || {
            echo "$f: $(wc -l <"$f") lines"
            bad=1
        }
    done
    [ "$bad" -eq 0 ]
}

# --- the command and its descriptions -------------------------------------------------------------

verbs() {
    "$HEADSTART" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p'
}

# long_options [VERB]: prints the long options that --help shows
long_options() {
    "$HEADSTART" ${1:+"$1"} --help | sed -n '/^Options:/,$s/^ *\(-[a-z] \)\{0,1\} *--\([a-z-]*\).*/\2/p' | sort -u
}

@test "verbs: the table, --help, the man page, the completion and the files agree" {
    need_binary "$HEADSTART"
    local help man completion files table
    help=$(verbs | sort)
    man=$(sed -n '/^\.SH VERBS/,/^\.SH OPTIONS/s/^\.SS \([a-z-]*\).*/\1/p' docs/man/headstart.8 | sort)
    completion=$(sed -n '/local -A options=(/,/^    )/s/^ *\[\([a-z-]*\)\]=.*/\1/p' data/completions/headstart.bash | sort)
    files=$(basename -s .c -a src/cli/verb-*.c | sed 's/^verb-//' | sort)
    table=$(sed -n '/verbs\[\] = {/,/};/p' src/cli/main.c | grep -oE '&verb_[a-z_]+' | sed 's/&verb_//; s/_/-/g' | sort)
    [ -n "$help" ]
    [ "$(wc -l <<<"$help")" -ge 7 ]
    diff <(echo "$help") <(echo "$man")
    diff <(echo "$help") <(echo "$completion")
    diff <(echo "$help") <(echo "$files")
    diff <(echo "$help") <(echo "$table")
}

# Prints the long options in the man page source on standard input.
man_options() {
    sed 's/\\-/-/g' | grep -oE -- '--[a-z]+(-[a-z]+)*' | sed 's/^--//' | sort -u
}

@test "every verb has a run under valgrind" {
    run -0 tests/analysis/valgrind-verbs --build="$HS_BUILD" --missed
    [[ $output =~ ^[2-9][0-9]\ verbs,\ not\ run:\ none$ ]] || {
        echo "$output"
        false
    }
}

@test "options of every verb: --help, the man page and the completion agree" {
    need_binary "$HEADSTART"
    local verb global own
    global=$(long_options)
    diff <(echo "$global") <(sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' docs/man/headstart.8 |
        man_options)
    diff <(echo "$global") <(sed -n "s/^ *local global='\(.*\)'/\1/p" data/completions/headstart.bash |
        tr ' ' '\n' | sed 's/^--//; s/=$//' | sort -u)
    for verb in $(verbs); do
        own=$(comm -23 <(long_options "$verb") <(echo "$global"))
        echo "$verb: $own"
        diff <(printf '%s' "$own${own:+$'\n'}") <(sed -n "/^\.SS $verb/,/^\.S[SH]/p" docs/man/headstart.8 |
            sed -n '/^\.TP/{n;p}' | man_options)
        diff <(printf '%s' "$own${own:+$'\n'}") <(sed -n "s/^ *\[$verb\]='\(.*\)'/\1/p" data/completions/headstart.bash |
            tr ' ' '\n' | sed '/^$/d; s/^--//; s/=$//' | sort -u)
    done
}

@test "options of headstartd, headstart-init, headstart-replay and headstart-bus are in their man pages" {
    local program page o
    for program in "$HEADSTARTD" "$HEADSTART_INIT" "$HEADSTART_REPLAY" "$HS_BUILD/src/bus/headstart-bus"; do
        need_binary "$program"
        page=docs/man/$(basename "$program").8
        run "$program" --help
        [ "$status" -eq 0 ]
        for o in $(grep -oE -- '--[a-z][a-z-]+' <<<"$output" | sort -u); do
            grep -qF -- "${o//-/\\-}" "$page" || {
                echo "$page does not describe $o"
                return 1
            }
        done
    done
}

@test "configuration keys: the parser, the man page and the commented defaults agree" {
    local parser conf man
    parser=$(sed -n '/} keys\[\] = {/,/};/p' src/config/config.c |
        sed -nE 's/.*\{"([A-Za-z]+)", "([A-Za-z]+)".*/\1 \2/p' | sort)
    conf=$(awk '/^\[/ { s = substr($0, 2, length($0) - 2) } /^#[A-Z][A-Za-z]*=/ { split(substr($0, 2), a, "="); print s, a[1] }' \
        data/headstart.conf | sort)
    [ -n "$parser" ]
    diff <(echo "$parser") <(echo "$conf")
    while read -r _ key; do
        grep -q "\\\\fI$key=" docs/man/headstart.conf.5
    done <<<"$parser"
}


@test "completions: the files of the three shells are what the declared options give" {
    need_command zsh fish
    need_binary "$HEADSTART" "$HS_BUILD/src/evaluate/headstart-evaluate"
    local f
    data/completions/generate "$HEADSTART" "$HS_TMP"
    for f in headstart.bash _headstart headstart.fish; do
        diff "data/completions/$f" "$HS_TMP/$f" || {
            echo "run data/completions/generate $HEADSTART"
            return 1
        }
    done
    # With --json, --help lists the same verbs and options.
    diff <("$HEADSTART" --json=short --help | jq -r '.verbs[].name') <(verbs)
    diff <("$HEADSTART" --json=short --help | jq -r '.options[].name' | sort) <(long_options)
    zsh -n data/completions/_headstart
    fish --no-execute data/completions/headstart.fish
    # fish completes without a terminal.
    run -0 fish --no-config -c 'source data/completions/headstart.fish; complete -C "headstart plan --policy=g"'
    [[ $output == "--policy=gate"* ]]
    run -0 fish --no-config -c 'source data/completions/headstart.fish; complete -C "headstart re"'
    [ "$(cut -f1 <<<"$output" | tr '\n' ' ')" = "record refresh relocate replay report rerecord " ]
}

# has_page NAME: true if a man page or an alias has that name.
has_page() {
    [ -e "docs/man/$1.8" ] || grep -qF "'$1'" docs/man/meson.build
}

@test "every program, unit and hook has a man page, and units name pages that exist" {
    local f name page
    # Each program that meson installs has a man page.
    run -0 bash -c "grep -rhA12 '^executable(' src --include=meson.build | sed -n \"s/^executable('\([a-z-]*\)'.*/\1/p\""
    [ "${#lines[@]}" -ge 5 ]
    for name in "${lines[@]}"; do
        [ "$name" = is-login ] && continue # in headstart-hooks(8)
        has_page "$name" || { echo "no man page: $name"; return 1; }
    done
    for f in units/*.in; do
        name=$(basename "$f" .in)
        has_page "$name" || { echo "no man page: $name"; return 1; }
        run -0 grep -oE 'man:[^ ]+\([58]\)' "$f"
        grep -qx "man:$name(8)" <<<"$output"
        for page in $(sed 's/^man://; s/([58])$//' <<<"$output"); do
            has_page "$page" || { echo "$f: no such page: $page"; return 1; }
        done
    done
    # headstart-hooks(8) names each script of hooks/meson.build.
    for name in $(sed -n "s/^foreach script : \[\(.*\)\]/\1/p" hooks/meson.build | tr -d "',") rebuild-initrd is-login; do
        grep -qE "^\\.B.*\b$name\b" docs/man/headstart-hooks.8 || { echo "headstart-hooks(8): no $name"; return 1; }
    done
    # Each page refers only to pages that exist, and names the version of this release.
    for page in $(grep -rhoE '^\.BR "?headstart[a-z.@\-]* ?"? \(8\)' docs/man | sed 's/^\.BR "*//; s/\\//g; s/ .*//' | sort -u); do
        has_page "$page" || { echo "no such page: $page"; return 1; }
    done
    name=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
    for f in docs/man/*.[578]; do
        grep -q "^\.TH .*\"headstart $name\"" "$f"
        [[ $f == *.[57] ]] || has_page "$(basename "$f" .8)"
        grep -qF "'$(basename "$f")'" docs/man/meson.build || { echo "not installed: $f"; return 1; }
    done
}

@test "the documentation becomes web pages, in which every link leads somewhere" {
    need_command mandoc
    local page
    docs/site "$HS_TMP/site"
    # There is a page for each document and each man page.
    [ "$(find "$HS_TMP/site" -name '*.html' | wc -l)" -eq "$(cat <(ls docs/*.md docs/man/*.[578]) <(echo README.md) <(echo CONTRIBUTING.md) | wc -l)" ]
    for page in index users distributors architecture predictors headstart.8 headstart.conf.5; do
        grep -q '<h1' "$HS_TMP/site/$page.html"
        # The page loads nothing from the network.
        run -1 grep -oE '(src|href)="https?://[^"]*\.(js|css|png|svg)"' "$HS_TMP/site/$page.html"
    done
    grep -q 'href="headstart.8.html"' "$HS_TMP/site/index.html"
    # A document that no menu shows, and a link that leads nowhere, are refused.
    mkdir "$HS_TMP/tree"
    cp -r README.md CONTRIBUTING.md docs "$HS_TMP/tree"
    echo '# New' >"$HS_TMP/tree/docs/new.md"
    run -1 "$HS_TMP/tree/docs/site" "$HS_TMP/other"
    [[ $output == *"docs/new.md is in no section"* ]]
    rm "$HS_TMP/tree/docs/new.md"
    echo '[x](nowhere.md)' >>"$HS_TMP/tree/docs/users.md"
    run -1 "$HS_TMP/tree/docs/site" "$HS_TMP/other"
    [[ $output == *"docs/users.md: a link leads nowhere: nowhere.md" ]]
}

@test "man pages are well-formed" {
    need_command groff
    local f
    for f in docs/man/*.[578]; do
        run groff -man -Tutf8 -ww -z "$f"
        echo "$output"
        [ "$status" -eq 0 ]
        [ -z "$output" ]
    done
}

@test "the completion script loads and completes" {
    local -a COMP_WORDS COMPREPLY
    source data/completions/headstart.bash
    compopt() { :; }
    COMP_WORDS=(headstart re) COMP_CWORD=1
    _headstart
    [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')" = "record refresh relocate replay report rerecord " ]
    COMP_WORDS=(headstart --json = p) COMP_CWORD=3
    _headstart
    [ "${COMPREPLY[*]}" = pretty ]
    COMP_WORDS=(headstart plan --bud) COMP_CWORD=2
    _headstart
    [ "${COMPREPLY[*]}" = --budget= ]
}

@test "no negated check is written in a way that cannot fail" {
    # Under set -e a command after ! never fails the test; use "! … || false", or "run ! …".
    run -1 grep -rnP --include='*.bats' '^ *! (?!.*(\|\| (false|return)|[\\{]$))' tests
}

# Words that were replaced by terms of the field (docs/glossary.md), and phrases that are hard to
# read.
old_words='spindle|\bfades?\b|\bfading\b|\bsegments?\b|\bpieces?\b|\bworlds?\b|\bpartners?\b|\bbrought\b|\banew\b|[Nn]obody|[Ww]hoever|[Ss]o long a|is told|[Tt]ells? of|\btruth\b|good for nothing'

@test "the code uses the terms of the field" {
    run grep -nHE '\bspindle|\bfad(e|es|ed|ing)\b|_fade|\bsegments?\b|\bpieces?\b|\bworlds?\b|\bpartners?\b|\bbrought\b|\btruth\b|half_life' \
        src/*/*.[ch] units/*.in units/snippets/*
    # The code that reads old files knows the names of members that older versions wrote.
    [ "$(grep -cE 'version == 1 [?]' <<<"$output")" -eq 2 ]
    run grep -vE 'version == 1 [?]|\[1\] = \{"halflife"' <<<"$output"
    echo "$output"
    [ -z "$output" ]
}

@test "man pages, help, configuration and glossary use the terms of the field" {
    need_binary "$HEADSTART" "$HEADSTARTD" "$HEADSTART_REPLAY"
    local verb
    {
        cat docs/man/headstart.8 docs/man/headstart.conf.5 docs/glossary.md data/headstart.conf
        grep -v '^Version 1 had other names' docs/formats.md
        for verb in '' $(verbs); do
            [[ $verb == evaluate ]] || "$HEADSTART" $verb --help
        done
        "$HEADSTARTD" --help
        "$HEADSTART_REPLAY" --help
    } >"$HS_TMP/texts"
    [ "$(wc -l <"$HS_TMP/texts")" -gt 500 ]
    run -1 grep -nE "$old_words" "$HS_TMP/texts"
    # "beside" may occur only as the old name of a policy.
    grep -q beside "$HS_TMP/texts"
    run -1 grep -n '\(^\|[^B]\)beside' "$HS_TMP/texts"
}

@test "every figure in README and docs has a source: a result of the benchmark, the output of a program, or a dated measurement" {
    need_command python3
    run tests/bench/figures
    echo "$output"
    [ "$status" -eq 0 ]
    # Every figure is in a file that a program wrote, in the code, or in a paper.
    local without_file=0 n
    [[ $output =~ ', '([0-9]+)' of them no file'$ ]]
    [ "${BASH_REMATCH[1]}" -le "$without_file" ]
    # The check fails for a new figure in the text or in a table, for a line that differs from the
    # output of the program, and for a measurement that is in no document.
    local d=$HS_TMP/copy change
    for change in 's/off after 17 sessions/off after 3.25 s and 17 sessions/' 's/^| trace | .*/| trace | 12.75 |/' \
        's/^| -10 % | 5 % | normal | 17 |/| -10 % | 5 % | normal | 18 |/' 's/^boot ([a-z]*): status says /&1/' \
        's/50 ms/50 units/; s/10 %/some/; s/1\.5 %/few/'; do
        rm -rf "$d"
        mkdir -p "$d/tests/bench" "$d/docs"
        cp README.md "$d"
        cp tests/full-result "$d/tests"
        cp tests/bench/figures "$d/tests/bench"
        python3 -c 'import json; [print(m["file"]) for document in json.load(open("docs/results/figures.json")).values()
            for section in document.values() for m in section if "file" in m]' | sort -u | xargs cp --parents -t "$d"
        cp -r docs/results docs/*.md "$d/docs"
        printf '\n| table | value |\n| --- | --- |\n| trace | none |\n' >>"$d/docs/benefit.md"
        "$d/tests/bench/figures"
        sed -i "$change" "$d/docs/benefit.md"
        run -1 "$d/tests/bench/figures"
        echo "$output"
        [[ $output == *"benefit.md"* ]]
        # --update adds what is missing, with its command, and removes what is gone.
        if [[ $output != *"not a line of"* ]]; then
            "$d/tests/bench/figures" --update "measure this" >/dev/null
            "$d/tests/bench/figures"
        fi
    done
    # The check fails if the file that a measurement names has another number, or is missing, and for a figure of README.
    cp -r docs/results docs/*.md "$d/docs"
    "$d/tests/bench/figures"
    n=$(awk '$1 == "inject-plan" { print $11 }' "$d/tests/full-result") # the number of faults
    [ "$n" -gt 100 ]
    sed -i "/^inject-plan /s/ $n / $((n + 1)) /" "$d/tests/full-result"
    run -1 "$d/tests/bench/figures"
    [[ ${output//,/} == *"tests/full-result inject-plan does not contain $n"* ]]
    rm "$d/tests/full-result"
    run -1 "$d/tests/bench/figures"
    [[ $output == *"tests/full-result kill: there is no such file or line"* ]]
    cp tests/full-result "$d/tests"
    # The check fails if the code has another limit than the document.
    "$d/tests/bench/figures"
    sed -i 's/^#define TRACE_SAMPLES_MAX .*/#define TRACE_SAMPLES_MAX 129U/' "$d/src/trace/trace-limits.h"
    run -1 "$d/tests/bench/figures"
    [[ $output == *"src/trace/trace-limits.h TRACE_SAMPLES_MAX does not contain 128"* ]]
    cp src/trace/trace-limits.h "$d/src/trace"
    echo 'It takes 12.75 s.' >>"$d/README.md"
    run -1 "$d/tests/bench/figures"
    [[ $output == *"README.md, "*": 12.75 has no source"* ]]
}
