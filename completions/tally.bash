# bash completion for tally. The commands and flags are those of the installed `tally --help` and `tally COMMAND --help`.

# Flags of a help text, one a line; "--[no-]x" becomes both.
_tally_flags() {
    "$1" "$2" --help 2>/dev/null | grep -oE -e '^ +(-[a-zA-Z], )?--[][a-z-]+=?' -e '^ +-[a-zA-Z], ' |
        sed -E 's/^ +//; s/^(-[a-zA-Z]), ?/\1\n/' | sed -E '/^$/d; s/^--\[no-\](.*)$/--\1\n--no-\1/'
}

_tally() {
    local command=$1 word=$2 previous=$3 sub='' i
    COMPREPLY=()
    # "--name=value" comes in three words
    if [[ $word == = ]]; then
        word=''
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}=
    fi
    [[ $COMP_CWORD -gt 1 ]] && sub=${COMP_WORDS[1]}
    if [[ -z $sub ]]; then
        COMPREPLY=($(compgen -W "$("$command" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p') --help --version" -- "$word"))
        return
    fi
    if [[ $sub == run || $sub == doctor ]]; then
        # after "--" or the program's name, what stands there is the program's own
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [[ ${COMP_WORDS[i]} == -- ]]; then
                i=$((i + 1))
                break
            fi
            [[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i]} == = || ${COMP_WORDS[i - 1]} == -o || ${COMP_WORDS[i - 1]} == = ]] || break
        done
        if [[ $i -lt $COMP_CWORD || ${COMP_WORDS[i - 1]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset "$i"
            elif [[ $i -lt $COMP_CWORD ]]; then
                COMPREPLY=($(compgen -f -- "$word"))
            else
                COMPREPLY=($(compgen -c -- "$word"))
            fi
            return
        fi
    fi
    case $previous in
    --auto-tags | --auto-tags=) COMPREPLY=($(compgen -W "none module thread caller module+caller module+thread+caller" -- "$word")) ;;
    --sort | --sort= | -s) COMPREPLY=($(compgen -W "bytes blocks allocated allocations name" -- "$word")) ;;
    --color | --color=) COMPREPLY=($(compgen -W "auto always never" -- "$word")) ;;
    -o | --output | --output=) COMPREPLY=($(compgen -f -- "$word")) ;;
    *)
        if [[ $word == -* ]]; then
            COMPREPLY=($(compgen -W "$(_tally_flags "$command" "$sub")" -- "$word"))
            [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
        else
            case $sub in
            help) COMPREPLY=($(compgen -W "$("$command" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p')" -- "$word")) ;;
            run) COMPREPLY=($(compgen -c -- "$word")) ;;
            doctor) COMPREPLY=($(compgen -c -- "$word") $(compgen -W "$(ps -u "$UID" -o pid= 2>/dev/null)" -- "$word")) ;;
            start | stop | clear | pause | resume | dump)
                COMPREPLY=($(compgen -W "$(ps -u "$UID" -o pid= 2>/dev/null)" -- "$word"))
                ;;
            *) COMPREPLY=($(compgen -f -- "$word")) ;;
            esac
        fi
        ;;
    esac
    return 0
}
complete -o filenames -F _tally tally
