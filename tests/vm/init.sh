# shellcheck shell=sh
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The initrd: loads the virtio drivers, brings the network up, mounts the root and hands over to systemd.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do
  insmod "/modules/$module"
done < /modules/order

# QEMU's own network has the same addresses in each guest. Up before systemd, so that no network daemon is needed.
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2

until mount -t ext4 -o noatime /dev/vda /root; do
  usleep 100000
done
mount --move /dev /root/dev
umount /proc /sys
exec switch_root /root /lib/systemd/systemd
