
_gatepost() {
        local -a offers=(${=$(_gatepost_offer "$PREFIX" "${(@)words[2,CURRENT-1]}")})
        if (($#offers)); then
                compadd -a offers
        else
                _files
        fi
}

# Loaded by compinit the file is the function; otherwise it is sourced.
if [[ ${funcstack[1]-} == _gatepost ]]; then
        _gatepost "$@"
else
        compdef _gatepost gatepost
fi
