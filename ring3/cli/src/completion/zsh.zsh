
# Names of nodes, and commands on them.
_ring3_nodes() { compadd -- ${(f)"$(ring3 ls 2>/dev/null | awk 'NR > 1 { print $1 }')"} }
# Names of the interfaces of a node.
_ring3_interfaces() { compadd -- ${(f)"$(ring3 stat "$1" 2>/dev/null | awk '$1 == "port" { print $2 }')"} }
# The words from the Nth on are a command line of their own.
_ring3_command() {
    shift $(($1 - 1)) words
    (( CURRENT -= $1 - 1 ))
    _normal
}
_ring3_with_nodes() {
    local verb=$words[2] at
    case $verb in
    exec)
        at=4
        [[ $words[4] = -- ]] && at=5
        if (( CURRENT == 4 )); then compadd -- --; fi
        if (( CURRENT >= at )); then _ring3_command $at; return; fi ;;
    run|up)
        for (( at = 3; at < CURRENT; at++ )); do
            if [[ $words[at] = -- ]]; then _ring3_command $((at + 1)); return; fi
        done
        if [[ $words[CURRENT-1] = (--port|-p) ]]; then
            # A name or options follow.
            compadd -S '' -- link: switch: tap: host passt packet: xdp: vhost:
            return
        fi ;;
    esac
    case $verb:$CURRENT in
    exec:3|log:3|stat:3|wait:3|connect:3|socks:3|publish:3|capture:3|console:3|port:4|down:*)
        if [[ $words[CURRENT] != -* ]]; then _ring3_nodes; return; fi ;;
    port:5|capture:4)
        if [[ $verb:$words[3] != port:add ]]; then
            [[ $verb = port ]] || compadd -- lo
            _ring3_interfaces $words[CURRENT-1]
            return
        fi ;;
    esac
    _ring3 "$@"
}
compdef _ring3_with_nodes ring3
