
# Names of nodes, and commands on them. What is not a plain word is no name: compgen -W expands what it is given.
_ring3_plain='/^[A-Za-z0-9][A-Za-z0-9._@-]*$/ { print }'
_ring3_nodes() { ring3 ls 2>/dev/null | awk 'NR > 1 { print $1 }' | awk "$_ring3_plain"; }
# Names of the interfaces of a node.
_ring3_interfaces() { ring3 stat "$1" 2>/dev/null | awk '$1 == "port" { print $2 }' | awk "$_ring3_plain"; }
# The words from the Nth on are a command line of their own.
_ring3_command() {
    local word=${COMP_WORDS[COMP_CWORD]}
    # Where bash-completion is not installed: names of commands, then of files.
    if declare -F _command_offset >/dev/null; then _command_offset "$1"
    elif [ "$COMP_CWORD" = "$1" ]; then mapfile -t COMPREPLY < <(compgen -c -- "$word")
    else mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
}
_ring3_with_nodes() {
    local verb=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} at
    case $verb in
    exec)
        at=3
        [ "${COMP_WORDS[3]}" = -- ] && at=4
        [ "$COMP_CWORD" -lt "$at" ] || { _ring3_command "$at"; return; } ;;
    run|up)
        for ((at = 2; at < COMP_CWORD; at++)); do
            [ "${COMP_WORDS[at]}" != -- ] || { _ring3_command $((at + 1)); return; }
        done
        if [[ ${COMP_WORDS[COMP_CWORD - 1]} = --port || ${COMP_WORDS[COMP_CWORD - 1]} = -p ]]; then
            mapfile -t COMPREPLY < <(compgen -W "link: switch: tap: host passt packet: xdp: vhost:" -- "$word")
            # A name or options follow.
            compopt -o nospace 2>/dev/null
            return
        fi ;;
    esac
    case $verb:$COMP_CWORD in
    exec:2|log:2|stat:2|wait:2|connect:2|socks:2|publish:2|capture:2|console:2|port:3|down:*)
        case $word in
        -*) ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$(_ring3_nodes)" -- "$word"); return ;;
        esac ;;
    port:4|capture:3)
        if [ "$verb:${COMP_WORDS[2]}" != port:add ]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_ring3_interfaces "${COMP_WORDS[COMP_CWORD - 1]}") $([ "$verb" = port ] || echo lo)" -- "$word")
            return
        fi ;;
    exec:3)
        mapfile -t COMPREPLY < <(compgen -W -- -- "$word"; compgen -c -- "$word"); return ;;
    esac
    _ring3 "$@"
}
complete -F _ring3_with_nodes -o nosort -o bashdefault -o default ring3
