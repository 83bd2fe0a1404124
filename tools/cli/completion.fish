# fish completion for cusplice. Made by: cusplice help --completion fish

# The verb is $argv[1], and no -- stands before.
function __cusplice_in
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = $argv[1]; and not contains -- -- $words
end

function __cusplice_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = $argv[1]
end

# The same, behind --.
function __cusplice_behind
    set -l words (commandline -opc)
    __cusplice_is $argv[1]; and contains -- -- $words
end

function __cusplice_begins
    test (count (commandline -opc)) -eq 1
end

# The program behind the options, which are passed over with their values; $argv are those with one.
function __cusplice_program
    __fish_complete_subcommand --fcs-skip=2 $argv
end

function __cusplice_presets
    set -l words (commandline -opc)
    $words[1] help --completion presets 2>/dev/null
end

function __cusplice_setting
    set -l key (string split -m 1 = -- (commandline -ct))
    if test (count $key) -lt 2
        for name in $__cusplice_keys
            echo $name=
        end
        return
    end
    set -l values __cusplice_values_$key[1]
    if set -q $values
        for value in $$values
            echo $key[1]=$value
        end
    end
end

# TABLES
