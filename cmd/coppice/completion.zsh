#compdef coppice
# Completion of coppice for zsh.
_coppice() {
    local -a words_found meanings
    local line
    while IFS= read -r line; do
        words_found+=("${line%%$'\t'*}")
        meanings+=("${line%%$'\t'*}  ${line#*$'\t'}")
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if ((${#words_found} == 0)); then
        _files
        return
    fi
    # -U, as a part of a title leads to an id.
    compadd -U -l -d meanings -a words_found
}
if [ "$funcstack[1]" = "_coppice" ]; then
    _coppice "$@"
else
    compdef _coppice coppice
fi
