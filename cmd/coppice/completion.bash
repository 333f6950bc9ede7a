# Completion of coppice for bash.
_coppice() {
    local IFS=$'\n' word="${COMP_WORDS[COMP_CWORD]}" line
    COMPREPLY=()
    for line in $("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        COMPREPLY+=("${line%%$'\t'*}")
    done
    # Bash shows no meanings. An id that a part of a title led to takes its place.
    if ((${#COMPREPLY[@]} == 0)); then
        compopt -o default
    fi
}
complete -F _coppice coppice
