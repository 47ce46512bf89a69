# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What brings the kernel's values back after a boot: the program as one file, and the service that runs it."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ..places import DIRECTORY
from .journal import PATH
from .steps import BOOT, WantedFile

PROGRAM_PATH = "/usr/local/lib/kubenode/cpu-manager-housekeeping.pyz"
UNIT = "kubenode-housekeeping.service"
UNIT_DIRECTORY = "/etc/systemd/system"
# What ProtectHome and PrivateTmp hide from the service.
HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")

_PROGRAM_MODE = 0o755


# It has the network of the host, as the queues of its devices are what it writes; rps_cpus takes CAP_NET_ADMIN.
_UNIT = """\
# The role housekeeping of kubenode.cpu_manager writes this file.
[Unit]
Description=Keep the host's work on its reserved CPUs
Documentation=man:cpuset(7)
After=systemd-udev-settle.service network-pre.target
Before=kubelet.service irqbalance.service
ConditionPathExists={journal}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={interpreter} -I {program}
TimeoutStartSec=120

# It writes settings of the kernel and its journal, as root and without any other power.
CapabilityBoundingSet=CAP_DAC_OVERRIDE CAP_NET_ADMIN CAP_SYS_RESOURCE
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=-/sys/fs/cgroup {directory}
ProtectControlGroups=no
ProtectHome=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_UNIX
ProtectKernelTunables=no
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
UMask=0022

[Install]
WantedBy=multi-user.target
"""


class AtBoot(NamedTuple):
    """How the program is run. content: of the program, as zipapp makes it."""

    content: bytes
    interpreter: str
    path: str = PROGRAM_PATH


def boot_files(at_boot: AtBoot) -> tuple[list[WantedFile], Mapping[str, str]]:
    """The program and its service, and the link by which systemd starts that."""
    unit = _UNIT.format(journal=PATH, interpreter=at_boot.interpreter, program=at_boot.path, directory=DIRECTORY)
    place = "%s/%s" % (UNIT_DIRECTORY, UNIT)
    files = [
        WantedFile(BOOT, at_boot.path, at_boot.content, _PROGRAM_MODE),
        WantedFile(BOOT, place, unit.encode("utf-8")),
    ]
    return files, {"%s/multi-user.target.wants/%s" % (UNIT_DIRECTORY, UNIT): place}
