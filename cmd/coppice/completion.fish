# Completion of coppice for fish.
function __coppice_complete
    set -l given (commandline -opc)
    set -l last (commandline -ct)
    set -l program $given[1]
    set -e given[1]
    $program complete -- $given "$last" 2>/dev/null
end
complete -c coppice -f -n 'count (__coppice_complete) >/dev/null' -a '(__coppice_complete)'
