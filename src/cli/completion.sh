
# Print the words that may follow the words after the first, and may begin with the first. A row of the table is
# COMMAND|COMMANDS IN IT|OPTIONS.
_gatepost_offer() {
        local current=$1 command='' skip='' word name commands options
        shift
        for word; do
                if [ -n "$skip" ]; then
                        skip=''
                        continue
                fi
                case $word in
                -c | --config) skip=1 ;;
                -* | help) ;;
                *)
                        case $_gatepost_table in
                        *"
${command:+$command }$word|"*) command=${command:+$command }$word ;;
                        esac
                        ;;
                esac
        done
        while IFS='|' read -r name commands options; do
                [ "$name" = "$command" ] || continue
                case $current in
                -*) echo "$options" ;;
                *) echo "$commands" ;;
                esac
        done <<END
$_gatepost_table
END
}
