
# Names of nodes, and commands on them.
_ring3_nodes() { ring3 ls 2>/dev/null | awk 'NR > 1 { print $1 }'; }
_ring3_with_nodes() {
    local verb=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]}
    case $verb in
    exec)
        local at=3
        [ "${COMP_WORDS[3]}" = -- ] && at=4
        if [ "$COMP_CWORD" -ge "$at" ]; then
            # Where bash-completion is not installed: names of commands, then of files.
            if declare -F _command_offset >/dev/null; then _command_offset "$at"
            elif [ "$COMP_CWORD" = "$at" ]; then mapfile -t COMPREPLY < <(compgen -c -- "$word")
            else mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
            return
        fi ;;
    esac
    case $verb:$COMP_CWORD in
    exec:2|log:2|stat:2|wait:2|connect:2|socks:2|publish:2|capture:2|console:2|port:3|down:*)
        case $word in
        -*) ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$(_ring3_nodes)" -- "$word"); return ;;
        esac ;;
    exec:3)
        mapfile -t COMPREPLY < <(compgen -W -- -- "$word"; compgen -c -- "$word"); return ;;
    esac
    _ring3 "$@"
}
complete -F _ring3_with_nodes -o nosort -o bashdefault -o default ring3
