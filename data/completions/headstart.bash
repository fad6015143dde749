# bash completion for headstart(8)                              -*- shell-script -*-
# SPDX-License-Identifier: LGPL-2.1-or-later
# Written by data/completions/generate.

_headstart() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb='' i
    local global='--help --version --state= --root= --json= --quiet'
    local -A options=(
        [status]=''
        [history]='--stage= --launches --limit='
        [measure]='--stage='
        [doctor]=''
        [explain]='--last-boot --last-login --limit='
        [plot]='--last --compare= --output= --width='
        [report]='--output='
        [metrics]='--output='
        [show]='--limit='
        [record]='--stage= --output= --exact'
        [learn]='--rebuild'
        [plan]='--stage= --user= --budget= --policy= --deadline= --min-probability= --dry-run --if-changed'
        [replay]='--stage= --wait --dry-run --policy= --ioprio= --force'
        [rerecord]='--now --next-boot --stage= --user= --exact'
        [refresh]='--dry-run'
        [relocate]='--dry-run --force'
        [forget]='--stage= --user='
        [enable]='--now'
        [disable]='--now'
        [evaluate]='--predictor= --level= --stage= --cache= --budget= --waste= --order= --training= --horizon= --cycle= --grace= --io-latency= --io-rate= --seed= --habits= --users= --sessions= --reliability --no-timing'
        [merge]='--output= --prune= --per-machine --min-machines='
        [export]='--output= --prune='
        [import]=''
        [config]=''
    )

    # readline treats "=" as a separate word.
    if [[ $cur == = ]]; then
        cur=''
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ -v options[${COMP_WORDS[i]}] ]]; then
            verb=${COMP_WORDS[i]}
            break
        fi
    done

    COMPREPLY=()
    case "$verb $prev" in
    'history --stage' | 'measure --stage' | 'plan --stage' | 'replay --stage')
        mapfile -t COMPREPLY < <(compgen -W 'boot login' -- "$cur")
        return
        ;;
    'plan --policy')
        mapfile -t COMPREPLY < <(compgen -W 'auto off metadata concurrent gate idle' -- "$cur")
        return
        ;;
    *' --state' | *' --root')
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    *' --json')
        mapfile -t COMPREPLY < <(compgen -W 'short pretty off' -- "$cur")
        return
        ;;
    *' --stage')
        mapfile -t COMPREPLY < <(compgen -W 'boot login session' -- "$cur")
        return
        ;;
    *' --compare')
        mapfile -t COMPREPLY < <(compgen -W 'control' -f -- "$cur")
        return
        ;;
    *' --output')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    *' --user')
        mapfile -t COMPREPLY < <(compgen -u -- "$cur")
        return
        ;;
    *' --policy')
        mapfile -t COMPREPLY < <(compgen -W 'metadata concurrent gate idle' -- "$cur")
        return
        ;;
    *' --ioprio')
        mapfile -t COMPREPLY < <(compgen -W 'idle best-effort' -- "$cur")
        return
        ;;
    *' --predictor')
        mapfile -t COMPREPLY < <(compgen -W 'lru naive session-share last-successor best-j-of-k 2-gram+ 1-5-gram+ association hybrid access-trees graph pcm epcm preload mixture' -- "$cur")
        return
        ;;
    *' --level')
        mapfile -t COMPREPLY < <(compgen -W 'applications files' -- "$cur")
        return
        ;;
    *' --cache')
        mapfile -t COMPREPLY < <(compgen -W 'unlimited' -- "$cur")
        return
        ;;
    *' --order')
        mapfile -t COMPREPLY < <(compgen -W 'worth probability' -- "$cur")
        return
        ;;
    esac

    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$global ${options[$verb]:-}" -- "$cur")
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
        return
    fi
    case $verb in
    '')
        mapfile -t COMPREPLY < <(compgen -W "${!options[*]}" -- "$cur")
        ;;
    explain)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    plot)
        mapfile -t COMPREPLY < <(compgen -W 'boot login session launch' -f -- "$cur")
        ;;
    show)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    record)
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        ;;
    learn)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    replay)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    evaluate)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    merge)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    import)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    esac
}

complete -o filenames -F _headstart headstart
