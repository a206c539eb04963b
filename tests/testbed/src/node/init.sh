# First process of the node's namespaces. Everything started here dies with it.
#
# TB_RUN      directory of this node
# TB_ADDRESS  the node's address, TB_GATEWAY the host's end of the link
# TB_CGROUP   name of the node's cgroup
set -u

mount --make-rprivate /
mount -t proc proc /proc
# Pods mount with propagation; it stays inside this namespace.
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/netns
mount -t tmpfs tmpfs /var/log
# The kubelet insists on a directory of this name; the machine gets none.
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/kubelet
mount --bind "$TB_RUN/kubelet" /var/lib/kubelet
mount --make-shared /var/lib/kubelet

# The kubelet writes these settings of the whole machine when they differ from what it wants. It is
# shown what it wants.
want() {
	printf '%s\n' "$2" >"$TB_RUN/want/${1##*/}"
	mount --bind "$TB_RUN/want/${1##*/}" "/proc/sys/$1"
}
mkdir -p "$TB_RUN/want"
want vm/overcommit_memory 1
want vm/panic_on_oom 0
want kernel/panic 10
want kernel/panic_on_oops 1
want kernel/keys/root_maxkeys 1000000
want kernel/keys/root_maxbytes 25000000

hostname node1
ip link set lo up
until ip link show "$TB_LINK" >/dev/null 2>&1; do sleep 0.05; done
ip addr add "$TB_ADDRESS/30" dev "$TB_LINK"
ip link set "$TB_LINK" up
ip route add default via "$TB_GATEWAY"
echo 1 >/proc/sys/net/ipv4/ip_forward
[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] ||
	echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
		echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
	done 2>/dev/null
	mkdir -p "/sys/fs/cgroup/$TB_CGROUP"
else
	for controller in cpu cpuacct cpuset memory devices freezer blkio pids systemd; do
		[ ! -d "/sys/fs/cgroup/$controller" ] || mkdir -p "/sys/fs/cgroup/$controller/$TB_CGROUP"
	done
	for file in cpus mems; do
		cat "/sys/fs/cgroup/cpuset/cpuset.$file" >"/sys/fs/cgroup/cpuset/$TB_CGROUP/cpuset.$file"
	done
fi

start() { sh "$TB_RUN/daemons/$1.sh" >"$TB_RUN/log/$1.log" 2>&1 & }

for daemon in etcd containerd registry kube-apiserver; do start "$daemon"; done
# The owner, who can ask the API server, says when it serves.
until [ -e "$TB_RUN/serving" ]; do sleep 0.05; done
for daemon in kube-controller-manager kube-scheduler kubelet kube-proxy; do start "$daemon"; done
while :; do wait; sleep 1; done
