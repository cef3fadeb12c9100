#!/bin/sh
# The first process of the guest (see guest.py). It finds no /lib/modules: they are where Debian's
# user-mode-linux has them.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
stty raw -echo </dev/ttyS0
exec </dev/ttyS0 >/dev/ttyS0 2>&1
modules=/usr/lib/uml/modules/$(uname -r)/kernel
# Without hmac there is no cookie: listen() gives ENOSYS.
for module in crypto/hmac lib/crc-ccitt net/ipv6/ipv6 net/ipv4/udp_tunnel net/ipv6/ip6_udp_tunnel \
	net/sctp/sctp; do
	insmod "$modules/$module.ko" || echo "insmod $module failed"
done
ip link set lo up
for i in 0 1; do
	ip addr add "10.8$((i + 1)).0.2/24" dev "vec$i" || echo "addr failed"
	# Without duplicate address detection it can be used at once.
	ip addr add "fd00:8$((i + 1))::2/64" dev "vec$i" nodad || echo "addr failed"
	# The driver loses packets that are larger, with encapsulation.
	ip link set "vec$i" gso_max_size 1500 up || echo "link failed"
done
sysctl -qw net.core.rmem_max=8388608 net.core.wmem_max=8388608 \
	net.sctp.auth_enable=1 net.sctp.addip_enable=1 net.sctp.reconf_enable=1 \
	net.sctp.intl_enable=1 || echo "sysctl failed"
# A program that gets the signal to leave may have ended before it reads that.
leave() { :; }
echo booted
while read -r line; do
	eval "$line"
done
echo o >/proc/sysrq-trigger
sleep 5
