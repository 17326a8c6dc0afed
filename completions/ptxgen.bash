# SPDX-License-Identifier: Apache-2.0
# Bash completion.  `ptxgen complete` knows the commands, options and values; files are bash's.
_ptxgen()
{
    local line=${COMP_LINE:0:COMP_POINT} words=() current
    read -ra words <<< "$line"
    [[ $line == *" " ]] && words+=("")
    current=${words[-1]}
    mapfile -t COMPREPLY < <("${words[0]}" complete -- "${words[@]:1}" 2> /dev/null | cut -f1)
    if [[ ${#COMPREPLY[@]} -eq 0 || ${#words[@]} -eq 2 && $current != -* ]]; then
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "${current##*=}")
        compopt -o filenames
    elif [[ $current == *=* ]]; then # bash splits words at '=' and replaces the last part
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*=}"}"}")
    fi
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -F _ptxgen ptxgen
