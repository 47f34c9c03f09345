
# Names of nodes, and commands on them.
function __ring3_nodes
    ring3 ls 2>/dev/null | awk 'NR > 1 { print $1 }'
end
# Names of the interfaces of a node.
function __ring3_interfaces
    ring3 stat $argv[1] 2>/dev/null | awk '$1 == "port" { print $2 }'
end
# At which word a command line of its own begins, if the one that is being typed is of that.
function __ring3_command_at
    set -l words (commandline -opc)
    set -l here (math (count $words) + 1)
    switch "$words[2]"
        case exec
            set -l at 4
            test "$words[4]" = -- && set at 5
            test $here -ge $at && echo $at
        case run up
            set -l at (contains -i -- -- $words) && test $at -gt 2 && math $at + 1
        case '*'
            false
    end
end
# What fish offers for that.
function __ring3_command
    set -l at (__ring3_command_at)
    set -l words (commandline -opc)
    complete -C (string join -- ' ' (string escape -- $words[$at..-1]) (commandline -ct))
end
# Whether the word that is being typed is the Nth, behind one of these verbs.
function __ring3_word
    set -l words (commandline -opc)
    test (count $words) -eq (math $argv[1] - 1) && contains -- "$words[2]" $argv[2..-1]
end
complete -c ring3 -n "__ring3_word 3 exec log stat wait connect socks publish capture console; or __fish_seen_subcommand_from down" -f -a "(__ring3_nodes)"
complete -c ring3 -n "__ring3_word 4 port" -f -a "(__ring3_nodes)"
complete -c ring3 -n "__ring3_word 4 exec" -f -a "--"
complete -c ring3 -n "__ring3_word 5 port; and test (commandline -opc)[3] = del" -f -a "(__ring3_interfaces (commandline -opc)[4])"
complete -c ring3 -n "__ring3_word 4 capture" -f -a "(__ring3_interfaces (commandline -opc)[3]) lo"
complete -c ring3 -n "__fish_seen_subcommand_from run up; and not __ring3_command_at" -s p -l port -x -a "link: switch: tap: host passt packet: xdp: vhost:"
complete -c ring3 -n "__ring3_command_at" -f -a "(__ring3_command)"
