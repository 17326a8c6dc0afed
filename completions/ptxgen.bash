# SPDX-License-Identifier: Apache-2.0
# Bash completion.  Options come from `ptxgen COMMAND --help`, so there is no second list of them.
_ptxgen()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local commands="compile check explain run schema devices variants bench tune cache reference"
    local command=compile word option words=()
    COMPREPLY=()
    if [[ ${COMP_WORDS[1]} != "$current" || COMP_CWORD -gt 1 ]]; then
        for word in $commands; do
            [[ ${COMP_WORDS[1]} == "$word" ]] && command=$word
        done
    fi
    # bash splits words at '=': --emit = pl
    option=$previous
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $previous == "=" ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $option in
    --emit) words=(ptx cubin ll plan problem manifest header explain) ;;
    --device) words=(auto cpu cuda) ;;
    cache) words=(path stats clear) ;;
    --cache | --tuning) words=(off) ;;
    --reference) words=(oracle default) ;;
    --export) words=(t1 t4) ;;
    --diagnostics) words=(text json) ;;
    --color) words=(auto always never) ;;
    --arch) words=(native sm_70 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_103 sm_120 sm_121) ;;
    esac
    if [[ ${#words[@]} -gt 0 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$current")
    elif [[ $current == -* ]]; then
        mapfile -t words < <("${COMP_WORDS[0]}" "$command" --help 2> /dev/null | grep -o -e '--[a-z-]*=\?' | sort -u)
        mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$current")
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        if [[ $COMP_CWORD -eq 1 ]]; then
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$commands" -- "$current")
        fi
        compopt -o filenames
    fi
}
complete -F _ptxgen ptxgen
