
# Whether a text is the name of a command.
_gatepost_is_command() {
        [[ $'\n'$_gatepost_table == *$'\n'"$1|+|"* ]]
}

# Complete $2, a value that the table calls $1.
_gatepost_value() {
        local name values
        case $1 in
        FILE | BODY | HEADERS | DIR)
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$2")
                return
                ;;
        esac
        while IFS='|' read -r name values; do
                [[ $name != "=$1" ]] || mapfile -t COMPREPLY < <(compgen -W "$values" -- "$2")
        done <<<"$_gatepost_table"
}

_gatepost() {
        local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
        local command='' help='' words='' offers='' argument='' name kind value i IFS=$' \t\n'
        COMPREPLY=()
        # bash splits --option=VALUE into three words
        if [[ $cur == = ]]; then
                cur=''
        elif [[ $prev == = ]]; then
                prev=${COMP_WORDS[COMP_CWORD - 2]}
        fi
        for ((i = 1; i < COMP_CWORD; i++)); do
                case ${COMP_WORDS[i]} in
                -c | --config)
                        [[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))
                        ((i++))
                        ;;
                -*) ;;
                *)
                        if [[ $words/${COMP_WORDS[i]} == /help && $i -lt $((COMP_CWORD - 1)) ]]; then
                                help=1 # a command follows
                                continue
                        fi
                        words+=${words:+ }${COMP_WORDS[i]}
                        if _gatepost_is_command "$words"; then
                                command=$words
                                break
                        fi
                        ;;
                esac
        done
        [[ -z $help || -z $command ]] || return
        [[ $prev != -c ]] || prev=--config
        while IFS='|' read -r name kind value _; do
                if [[ $kind == + ]]; then
                        if [[ -z $command && $cur != -* && $name == "${words:+$words }"* ]]; then
                                name=${name#"${words:+$words }"}
                                offers+=" ${name%% *}"
                        fi
                elif [[ $name != "$command" ]]; then
                        continue
                elif [[ -n $value && $kind == "$prev" ]]; then
                        _gatepost_value "$value" "$cur"
                        return
                elif [[ -z $kind ]]; then
                        argument=$value
                elif [[ $cur == -* ]]; then
                        offers+=" $kind"
                fi
        done <<<"$_gatepost_table"
        if [[ -n $command && $cur != -* ]]; then
                _gatepost_value "$argument" "$cur"
        else
                mapfile -t COMPREPLY < <(compgen -W "$offers" -- "$cur" | sort -u)
        fi
}
complete -F _gatepost gatepost
