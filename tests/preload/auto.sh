#!/bin/sh
# auto.sh - automatic tags: every block below the module, the thread and the caller it has, in that order of choice, and
# below the manual tags. Usage: auto.sh PLUGIN COMBINATION (module, thread, caller joined by +; none)
set -eu
. "$(dirname "$0")/lib.sh"
plugin=$1
TALLY_CONF=auto_tags:$2
export TALLY_CONF
preloaded region "$PROGRAMS/auto" "$plugin" || fail "status $?"
file=$(region region)
"$SUMS" "$file" >/dev/null
# without the addresses of call sites, and what was paused
"$SUMS" --nodes "$file" | grep -v '^(paused)' | sed 's/+[0-9a-f]*//' | sort >"$scratch/nodes"

# Who made each block: tag, thread, module, live blocks, live bytes, blocks ever made, bytes ever made. site_one's and
# site_two's blocks are apart if callers are told apart.
path() { # TAG THREAD MODULE
    line=${1:+$1/}
    case $conf in *+thread+*) line="${line}thread:$2/" ;; esac
    case $conf in *+module+*) line="${line}module:$3/" ;; esac
    case $conf in *+caller+*) line="${line}caller:$3/" ;; esac
    [ "$line" ] || line=__root/
    printf '%s\t%s\t%s\t%s\t%s\n' "${line%/}" "$4" "$5" "$6" "$7"
}
conf=+$2+
{
    path '' auto auto 1 1001 2 2002
    path '' auto auto 1 2002 1 2002
    path '' worker auto 1 1001 1 1001
    path PluginA auto libpluginA.so 1 4004 1 4004
    path Mine auto auto 1 2002 1 2002
} >"$scratch/blocks"
case $conf in
*+caller+*) # site_one's blocks of two threads are one node if threads are not told apart
    key='$1 FS ($1 ~ /PluginA|Mine/ ? 0 : ($3 == 2002 ? 2 : 1))' ;;
*) key='$1' ;;
esac
awk -F '\t' -v OFS='\t' "{ k = $key; path[k] = \$1; for (i = 2; i <= 5; i++) sum[k, i] += \$i }
    END { for (k in path) print path[k], sum[k, 2], sum[k, 3], sum[k, 4], sum[k, 5] }" "$scratch/blocks" | sort >"$scratch/wanted"
diff "$scratch/wanted" "$scratch/nodes" || fail "$2: other nodes than wanted (<)"
cat "$scratch/nodes"
