
# Print the words that may follow those before the cursor. A row of the table is COMMAND|COMMANDS IN IT|OPTIONS.
function __gatepost_offer
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l command ''
    set -l skip
    for word in $words[2..-1]
        if set -q skip[1]
            set -e skip
            continue
        end
        switch $word
            case -c --config
                set skip 1
            case '-*' help
            case '*'
                set -l longer (string trim -- "$command $word")
                string match -q -- "$longer|*" $__gatepost_table; and set command $longer
        end
    end
    for row in $__gatepost_table
        set -l row (string split '|' -- $row)
        if test (count $row) -lt 3 -o "$row[1]" != "$command"
            continue
        else if string match -q -- '-*' $current
            string split ' ' -- $row[3]
        else if test -n "$row[2]"
            string split ' ' -- $row[2]
        else
            __fish_complete_path $current
        end
    end
end
complete -c gatepost -f -a '(__gatepost_offer)'
