# guard.sh PROGRAM [ARG...]: runs a program for as long as standard input stays open.
#
# The other end of standard input belongs to whoever started this. However that process ends, the
# pipe closes and the program is killed; if this shell is killed itself, the kernel kills the
# program.
exec 3<&0
setpriv --pdeathsig KILL "$@" 3<&- </dev/null &
program=$!
{ cat <&3 >/dev/null; kill -KILL "$program"; } 2>/dev/null &
watch=$!
exec 3<&-
wait "$program"
code=$?
kill "$watch" 2>/dev/null
exit "$code"
