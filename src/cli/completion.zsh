
_gatepost() {
        local -a rows=("${(@f)_gatepost_table}") row specs offers
        local command='' help='' typed='' action argument='' values
        local -i i
        words=("${(@)words/#%-c/--config}")
        for ((i = 2; i < CURRENT; i++)); do
                case $words[i] in
                --config) ((i++)) ;;
                -*) ;;
                *)
                        if [[ $typed/$words[i] == /help && $i -lt $((CURRENT - 1)) ]]; then
                                help=1 # a command follows
                                continue
                        fi
                        typed+=${typed:+ }$words[i]
                        if ((${rows[(I)${(b)typed}\|+\|*]})); then
                                command=$typed
                                break
                        fi
                        ;;
                esac
        done
        [[ -z $help || -z $command ]] || return
        for row in $rows; do
                row=("${(@s:|:)row}")
                if [[ $row[2] == + ]]; then
                        if [[ -z $command && $row[1] == ${(b)typed}${typed:+ }* ]]; then
                                action=${row[1]#"$typed${typed:+ }"}
                                offers+=("${action%% *}${${action:#* *}:+:$row[4]}")
                        fi
                elif [[ $row[1] == "$command" ]]; then
                        action=''
                        case $row[3] in
                        '') ;;
                        FILE | BODY | HEADERS | DIR) action=":$row[3]:_files" ;;
                        *)
                                values=${${(M)rows:#=$row[3]\|*}#*\|}
                                action=":$row[3]:(${(b)values})"
                                ;;
                        esac
                        if [[ -n $row[2] ]]; then
                                specs+=("$row[2]${action:+=}[${row[4]//(#m)[\[\]:]/\\$MATCH}]$action")
                        else
                                argument=$action
                        fi
                fi
        done
        if [[ -n $command ]]; then
                words=("$command" "${(@)words[i+1,-1]}")
                ((CURRENT -= i - 1))
                _arguments -S : $specs ${argument:+"*$argument"}
        elif [[ $PREFIX == -* || $words[CURRENT-1] == --config ]]; then
                _arguments -S : $specs
        else
                _describe command offers
        fi
}

# Loaded by compinit the file is the function; otherwise it is sourced.
if [[ ${funcstack[1]-} == _gatepost ]]; then
        _gatepost "$@"
else
        compdef _gatepost gatepost
fi
