# Completion of coppice for fish.
function __coppice_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c coppice -f -n 'count (__coppice_complete) >/dev/null' -a '(__coppice_complete)'
