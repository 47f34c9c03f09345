
# Names of nodes, and commands on them.
_ring3_with_nodes() {
    local verb=$words[2]
    case $verb:$CURRENT in
    exec:3|log:3|stat:3|wait:3|connect:3|socks:3|publish:3|capture:3|console:3|port:4|down:*)
        if [[ $words[CURRENT] != -* ]]; then
            compadd -- $(ring3 ls 2>/dev/null | awk 'NR > 1 { print $1 }')
            return
        fi ;;
    exec:*)
        local at=3
        [[ $words[4] = -- ]] && at=4
        if (( CURRENT > at )); then
            shift $at words; (( CURRENT -= at ))
            _normal
            return
        fi ;;
    esac
    _ring3 "$@"
}
compdef _ring3_with_nodes ring3
