# Keeps the node's namespaces while its owner lives, and leaves nothing of them behind.
#
# Standard input is the owner's: its end means that the owner is gone, unless the owner said `keep`
# first. A node that is kept lives until this process is told to end (TERM).
# Standard output is the machine-wide lock, held for as long as this process lives; nothing is ever
# written to it. The environment is that of init.sh, with TB_HOST_LINK and TB_ROUTES besides.
set -u
exec 3<&0 </dev/null

clean() {
	trap '' TERM INT HUP
	kill -KILL "$unshare" 2>/dev/null
	wait "$unshare" 2>/dev/null
	# The first process of a pid namespace is gone only after all the others.
	while [ -n "$init" ] && [ -e "/proc/$init" ]; do sleep 0.05; done
	ip link del "$TB_HOST_LINK" 2>/dev/null
	for try in 1 2 3 4 5 6 7 8 9 10; do
		left=$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$TB_CGROUP")
		[ -n "$left" ] || break
		find $left -depth -type d -exec rmdir {} + 2>/dev/null
		sleep 0.1
	done
	rm -rf "$TB_LAST_LOGS"
	mv "$TB_RUN/log" "$TB_LAST_LOGS" 2>/dev/null
	rm -rf "$TB_RUN"
	exit 0
}

init=
setpriv --pdeathsig KILL unshare --mount --pid --fork --net --ipc --uts --kill-child \
	sh "$TB_RUN/init.sh" >"$TB_RUN/log/init.log" 2>&1 3<&- &
unshare=$!
trap clean TERM INT HUP
echo $$ >"$TB_RUN/supervisor.pid"

{
	read -r word <&3
	[ "$word" = keep ] || kill -TERM $$
} >/dev/null 2>&1 &
exec 3<&-

until [ -n "$init" ]; do
	init=$(cat "/proc/$unshare/task/$unshare/children" 2>/dev/null) || break
	init=${init%% *}
	[ -n "$init" ] || sleep 0.02
done
until [ "$(readlink "/proc/$init/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link add "$TB_HOST_LINK" type veth peer name "$TB_LINK" netns "$init"
ip addr add "$TB_GATEWAY/30" dev "$TB_HOST_LINK"
ip link set "$TB_HOST_LINK" up
for route in $TB_ROUTES; do ip route add "$route" via "$TB_ADDRESS"; done
echo "$init" >"$TB_RUN/init.pid"

wait "$unshare"
clean
