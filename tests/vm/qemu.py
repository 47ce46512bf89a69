# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's arguments for a shape. Decides only: starts nothing and reads nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from .image import Image
from .shape import Shape

# Emulated, it shows threads of a core and a die's L3 cache, which QEMU's models of AMD do not.
CPU_MODEL = "Haswell-noTSX"

# The files that a machine has in its directory.
CONSOLE, DISK, INITRD, MONITOR = "console.log", "disk.qcow2", "initrd", "monitor"

_CGROUP_1 = ("systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=1")


def machine_arguments(shape: Shape, image: Image, with_kvm: bool, tsc_khz: int, more: Sequence[str] = ()) -> list[str]:
    """Return all that a machine consists of, the same in each start: a snapshot needs them unchanged.

    more: what a loader gives the kernel.
    """
    # Two threads of emulation on two CPUs of the host are no faster than one, and hang now and then.
    accelerator = "kvm" if with_kvm else "tcg,thread=single"
    arguments = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35"]
    arguments += ["-accel", accelerator, "-cpu", _cpu(shape), "-smp", _smp(shape), "-m", "%dM" % shape.memory]
    arguments += _numa(shape)
    # No BIOS looks for disks: the kernel starts at once.
    arguments += ["-bios", "qboot.rom", "-kernel", str(image.kernel), "-initrd", INITRD]
    arguments += ["-append", " ".join([*_kernel_arguments(shape, with_kvm, tsc_khz), *more])]
    arguments += ["-drive", "file=%s,format=qcow2,if=none,id=disk,cache=unsafe,discard=unmap" % DISK]
    arguments += ["-device", "virtio-blk-pci,drive=disk", "-device", "virtio-net-pci,romfile=,netdev=network"]
    # The host's port is a free one; the monitor knows it.
    return [*arguments, "-netdev", "user,id=network,hostfwd=tcp:127.0.0.1:0-:22"]


def run_arguments(name: str) -> list[str]:
    """Return what differs from start to start."""
    monitor = "unix:%s,server=on,wait=off" % MONITOR
    return ["-name", name, "-serial", "file:" + CONSOLE, "-qmp", monitor]


def overlay_arguments(base: Path, base_format: str, overlay: Path) -> list[str]:
    """Return qemu-img's arguments for a disk that keeps what is written, and leaves the base as it is."""
    return ["create", "-q", "-f", "qcow2", "-F", base_format, "-b", str(base), str(overlay)]


def _cpu(shape: Shape) -> str:
    # With KVM it would be the host's, and AMD's show no SMT.
    properties = [CPU_MODEL, "vendor=GenuineIntel"]
    properties += [] if shape.l3_cache else ["l3-cache=off"]
    properties += ["model-id=" + shape.model] if shape.model else []
    return ",".join(properties)


def _smp(shape: Shape) -> str:
    counts = (shape.sockets, shape.dies, shape.cores, shape.threads)
    text = "%d,maxcpus=%d" % (shape.cpus - shape.plugged_later, shape.cpus)
    return text + ",sockets=%d,dies=%d,cores=%d,threads=%d" % counts


def _numa(shape: Shape) -> list[str]:
    arguments: list[str] = []
    for number, node in enumerate(shape.numa_nodes):
        parts = ["node", "nodeid=%d" % number]
        # QEMU's number of a thread, whatever Linux calls it.
        parts += ["cpus=%d-%d" % (core * shape.threads, (core + 1) * shape.threads - 1) for core in node.cores]
        if node.memory:
            arguments += ["-object", "memory-backend-ram,id=memory%d,size=%dM" % (number, node.memory)]
            parts.append("memdev=memory%d" % number)
        arguments += ["-numa", ",".join(parts)]
    for source, row in enumerate(shape.distances):
        for target, distance in enumerate(row):
            arguments += ["-numa", "dist,src=%d,dst=%d,val=%d" % (source, target, distance)]
    return arguments


def _kernel_arguments(shape: Shape, with_kvm: bool, tsc_khz: int) -> list[str]:
    arguments = ["console=ttyS0", "quiet", "root=/dev/vda", "mitigations=off", "audit=0", "apparmor=0"]
    arguments += ["cryptomgr.notests", "random.trust_cpu=on"]
    if not with_kvm:
        # The guest sees the host's counter. Measured against an emulated clock on a busy host, it comes out wrong by
        # factors: the guest's seconds fly, and its watchdogs end what is merely slow.
        arguments += ["tsc_early_khz=%d" % tsc_khz, "no_timer_check"]
        arguments += ["nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1"]
    # A kubelet reads every file of every controller again and again, and cpuset is the one that matters here.
    arguments += ["cgroup_disable=blkio,hugetlb,misc,net_cls,net_prio,perf_event,rdma", "psi=0"]
    arguments += _CGROUP_1 if shape.cgroup == 1 else ()
    return [*arguments, *shape.kernel]
