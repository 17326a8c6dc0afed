# SPDX-License-Identifier: Apache-2.0
# Fish completion.  `ptxgen complete` knows the commands, options and values; files are fish's.
function __ptxgen
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c ptxgen -a '(__ptxgen)'
