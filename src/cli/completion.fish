
# Print what may follow before the cursor, each with its help behind a tab.
function __gatepost_complete
    set -l words (string replace -r '^-c$' -- --config (commandline -opc))
    set -l current (commandline -ct)
    set -l previous $words[-1]
    set -l command ''
    set -l help ''
    set -l typed ''
    set -l prefix ''
    set -l argument ''
    if string match -q -- '--*=*' $current
        set -l parts (string split -m 1 = -- $current)
        set prefix "$parts[1]="
        set previous $parts[1]
        set current $parts[2]
    end
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --config
                set -e words[1]
            case '-*'
            case '*'
                if test "$typed$words[1]" = help; and set -q words[2]
                    set help 1 # a command follows
                else
                    set typed $typed$words[1]
                    if string match -q -- "$typed|+|*" $__gatepost_table
                        set command $typed
                        break
                    end
                    set typed "$typed "
                end
        end
        set -e words[1]
    end
    if test -n "$help" -a -n "$command"
        return
    end
    for row in $__gatepost_table
        set -l row (string split '|' -- $row)
        if test "$row[2]" = +
            if test -z "$command"; and not string match -q -- '-*' $current; and string match -q -- "$typed*" $row[1]
                set -l rest (string split ' ' -- (string replace -- "$typed" '' $row[1]))
                test (count $rest) -gt 1; and echo $rest[1]; or printf '%s\t%s\n' $rest[1] $row[4]
            end
        else if test "$row[1]" != "$command"
            continue
        else if test -n "$row[3]" -a "$row[2]" = "$previous"
            __gatepost_value "$row[3]" "$current" "$prefix"
            return
        else if test -z "$row[2]"
            set argument $row[3]
        else if string match -q -- '-*' $current
            printf '%s\t%s\n' $row[2] $row[4]
        end
    end
    if test -n "$command" -a -n "$argument"; and not string match -q -- '-*' $current
        __gatepost_value $argument "$current" ''
    end
end

# Print the completions of a text, $argv[2], that the table calls $argv[1], each after $argv[3].
function __gatepost_value
    switch $argv[1]
        case FILE BODY HEADERS DIR
            string replace -r '^' -- $argv[3] (__fish_complete_path $argv[2])
        case '*'
            for values in (string match -- "=$argv[1]|*" $__gatepost_table)
                string replace -r '^' -- $argv[3] (string split -n ' ' -- (string split '|' -- $values)[2])
            end
    end
end

complete -c gatepost -f -a '(__gatepost_complete)'
