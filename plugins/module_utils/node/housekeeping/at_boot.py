# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What brings the kernel's values back after a boot: the program as one file, and the services that run it."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from ...host.layers import RPS
from ..places import DIRECTORY, UNIT_DIRECTORY
from ..service import PYTHON_FLAGS, SANDBOX
from .journal import PATH
from .steps import BOOT, KERNEL, NETWORK, WantedFile

PROGRAM_PATH = "/usr/local/lib/kubenode/cpu-manager-housekeeping.pyz"
UNIT, NETWORK_UNIT = "kubenode-housekeeping.service", "kubenode-housekeeping-network.service"

_PROGRAM_MODE = 0o755

# Its journal in /var/lib, and what it writes of the kernel, belong to root, so it needs no capability for them.
_UNIT = """\
# The role housekeeping of kubenode.cpu_manager writes this file.
[Unit]
Description=%(what)s
Documentation=man:cpuset(7)
After=%(after)s
Before=kubelet.service irqbalance.service
ConditionPathExists=%(journal)s

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=%(interpreter)s %(flags)s %(program)s / %(part)s
TimeoutStartSec=120

%(needs)sProtectProc=ptraceable
RestrictAddressFamilies=none
MemoryDenyWriteExecute=yes
%(sandbox)s
[Install]
WantedBy=multi-user.target
"""

# Interrupts and the watchdog are written in /proc, workqueues in /sys, and slices are cgroups.
_OF_KERNEL = """\
CapabilityBoundingSet=
PrivateNetwork=yes
ProtectKernelTunables=no
ProtectControlGroups=no
ReadWritePaths=-/sys/fs/cgroup %s
"""
# The queues of the host's devices are seen in the host's network alone, and rps_cpus takes CAP_NET_ADMIN.
_OF_NETWORK = """\
CapabilityBoundingSet=CAP_NET_ADMIN
PrivateNetwork=no
ProtectKernelTunables=yes
ProtectControlGroups=yes
ReadWritePaths=-/sys/devices -/proc/sys/net/core/rps_default_mask %s
"""


class AtBoot(NamedTuple):
    """How the program is run. content: of the program, as zipapp makes it. owner: user and group id, to whom
    all its files are to belong; None for whom they may belong to.
    """

    content: bytes
    interpreter: str
    path: str = PROGRAM_PATH
    owner: tuple[int, int] | None = None


def boot_files(at_boot: AtBoot, layers: Sequence[str]) -> tuple[list[WantedFile], Mapping[str, str]]:
    """The program and its services for these layers, and the links by which systemd starts those.

    What takes more power is in a service of its own, where it is wished at all.
    """
    files = [WantedFile(BOOT, at_boot.path, at_boot.content, _PROGRAM_MODE, owner=at_boot.owner)]
    after = "systemd-udev-settle.service"
    units = {UNIT: _unit(at_boot, "Keep the host's work on its reserved CPUs", after, KERNEL, _OF_KERNEL)}
    if RPS in layers:
        what = "Work on received packets on the reserved CPUs"
        units[NETWORK_UNIT] = _unit(at_boot, what, after + " network-pre.target", NETWORK, _OF_NETWORK)
    links = {}
    for name, text in units.items():
        place = "%s/%s" % (UNIT_DIRECTORY, name)
        files.append(WantedFile(BOOT, place, text.encode("utf-8"), owner=at_boot.owner))
        links["%s/multi-user.target.wants/%s" % (UNIT_DIRECTORY, name)] = place
    return files, links


def _unit(at_boot: AtBoot, what: str, after: str, part: str, needs: str) -> str:
    return _UNIT % {
        "what": what,
        "after": after,
        "journal": PATH,
        "interpreter": at_boot.interpreter,
        "flags": PYTHON_FLAGS,
        "program": at_boot.path,
        "part": part,
        "needs": needs % DIRECTORY,
        "sandbox": SANDBOX,
    }
