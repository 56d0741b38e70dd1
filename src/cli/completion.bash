
# Files are offered where there is no word.
_gatepost() {
        local current=${COMP_WORDS[COMP_CWORD]}
        mapfile -t COMPREPLY < <(compgen -W "$(_gatepost_offer "$current" "${COMP_WORDS[@]:1:COMP_CWORD-1}")" -- "$current")
}
complete -o default -F _gatepost gatepost
