#compdef cusplice
# zsh completion for cusplice. Made by: cusplice help --completion zsh
# TABLES

_cusplice_config() {
    local -a presets
    presets=(${(f)"$(_call_program presets cusplice help --completion presets 2>/dev/null)"})
    compadd -- $presets
    _files -g '*.conf'
}

_cusplice_setting() {
    local key
    if ! compset -P 1 '*='; then
        compadd -S '' -- ${^_cusplice_keys}=
        return
    fi
    key=${${IPREFIX%=}##*=}
    if [[ -n ${_cusplice_values[$key]} ]]; then
        compadd -- ${=_cusplice_values[$key]}
    else
        _files
    fi
}

_cusplice_traces() {
    _files -g '*.cst'
}

# A program, where -- stands before it.
_cusplice_behind() {
    (( ${words[(I)--]} )) && _command_names -e
}

_cusplice() {
    local curcontext=$curcontext state line
    typeset -A opt_args
    _arguments -C '(- *)'{-h,--help}'[print help]' '(- *)--version[print the version]' \
        '1: :->verb' '*:: :->rest'
    case $state in
    verb) _describe -t commands command _cusplice_verbs ;;
    rest)
        curcontext=${curcontext%:*}-$line[1]:
        _cusplice_verb $line[1]
        ;;
    esac
}

_cusplice "$@"
