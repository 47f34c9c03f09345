
# Names of nodes, and commands on them.
complete -c ring3 -n "__fish_seen_subcommand_from exec log stat wait connect socks publish capture console down" -f -a "(ring3 ls 2>/dev/null | awk 'NR > 1 { print \$1 }')"
complete -c ring3 -n "__fish_seen_subcommand_from port; and __fish_seen_subcommand_from add del" -f -a "(ring3 ls 2>/dev/null | awk 'NR > 1 { print \$1 }')"
complete -c ring3 -n "__fish_seen_subcommand_from exec" -a "(__fish_complete_subcommand)"
