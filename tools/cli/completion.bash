# bash completion for cusplice. Made by: cusplice help --completion bash
# TABLES

_cusplice_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Folders, files with the ending $1, and the words of $2; all files where there are none.
_cusplice_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(
        compgen -d -- "$cur"
        compgen -f -X "!*$1" -- "$cur"
        [[ -z $2 ]] || compgen -W "$2" -- "$cur"
    )
    ((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# The program whose name is $1, and its arguments. _command_offset is that of bash-completion.
_cusplice_program() {
    local i
    if [[ $cur != "$1" ]] && declare -F _command_offset >/dev/null; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} != "$1" ]] || break
        done
        _command_offset "$i"
    elif [[ $2 == first ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(
            compgen -d -- "$cur"
            compgen -c -- "$cur"
        )
    else
        _cusplice_files ''
    fi
}

_cusplice_setting() {
    local key=${cur%%=*}
    if [[ $cur != *=* ]]; then
        compopt -o nospace 2>/dev/null
        _cusplice_words "$_cusplice_keys"
        return
    fi
    cur=${cur#*=}
    if [[ -n ${_cusplice_values[$key]} ]]; then
        _cusplice_words "${_cusplice_values[$key]}"
    else
        _cusplice_files ''
    fi
}

_cusplice_value() {
    local kind=${_cusplice_values["$verb $1"]}
    case $kind in
    FILE) _cusplice_files '' ;;
    CONFIG) _cusplice_files .conf "$("${words[0]}" help --completion presets 2>/dev/null)" ;;
    SETTING) _cusplice_setting ;;
    ANY) ;;
    *) _cusplice_words "$kind" ;;
    esac
}

# COMP_WORDS is cut at each = and :, so the line is cut anew, at blanks.
_cusplice() {
    local line=${COMP_LINE:0:COMP_POINT} words cur verb word i last n=0
    read -ra words <<<"$line"
    [[ $line != *[[:blank:]] ]] || words+=('')
    last=$((${#words[@]} - 1)) verb=${words[1]} cur=${words[${#words[@]} - 1]} COMPREPLY=()
    if ((last == 1)); then
        _cusplice_words "$_cusplice_verbs help --help --version"
        return
    elif [[ $verb == help ]]; then
        _cusplice_words "$_cusplice_verbs"
        return
    fi
    for ((i = 2; i < last; i++)); do
        word=${words[i]}
        if [[ $word == -- ]] && ((i + 1 <= last)); then
            _cusplice_program "${words[i + 1]}" "$( ((i + 1 < last)) || echo first)"
            return
        elif [[ $word == -* && -n ${_cusplice_values["$verb $word"]} ]]; then
            if ((++i == last)); then
                _cusplice_value "$word"
                return
            fi
        elif [[ $word != -* && ${_cusplice_takes[$verb]} == PROGRAM ]]; then
            _cusplice_program "$word" ''
            return
        elif [[ $word != -* ]]; then
            ((++n))
        fi
    done
    if [[ $cur == --*=* ]]; then
        word=${cur%%=*} cur=${cur#*=}
        _cusplice_value "$word"
    elif [[ $cur == -* ]]; then
        _cusplice_words "${_cusplice_options[$verb]}"
    else
        _cusplice_operand "$n"
    fi
}

# A word that is no option; $1 of them stand before it.
_cusplice_operand() {
    case ${_cusplice_takes[$verb]} in
    PROGRAM) _cusplice_program "$cur" first ;;
    TRACE) _cusplice_files .cst "$([[ $1 != 0 ]] || echo "${_cusplice_first[$verb]}")" ;;
    DATABASE) _cusplice_files .sqlite ;;
    CONF) _cusplice_files .conf ;;
    FOLDER) _cusplice_files / ;;
    esac
}

complete -F _cusplice cusplice
