# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saves what shows who manages a node's CPUs, and what its container runtime is configured to, as far as that is read.

Of an owner that is active. What another one has left behind would make it an active one in a saved node, where no
process shows the difference.
"""

from __future__ import annotations

import json
import re

from ..errors import CPUManagerError
from ..host.owner import owners, tuned
from ..host.runtime.state import read_files
from .collector import Collector
from .node import Node
from .owners import owners_of
from .redacted_files import runtime_redacted
from .runtime import runtime_of

_PROCESS = re.compile(r"process (\d+)")
# The program whose processes are evidence of an owner.
_PROGRAMS = {
    owners.DRA_CPU: owners.DRACPU,
    owners.CRIO_INTERRUPTS: owners.CRIO,
    owners.CRIO_SHARED: owners.CRIO,
    owners.TUNED: "tuned",
    owners.IRQBALANCE: "irqbalance",
    **{owner: owners.POLICY_PROGRAM + policy for owner, policy in owners.POLICIES.items()},
}
_DIRECTORIES = ("/etc/crio", "/etc/containerd")
# In the path of a link by which systemd starts a unit.
_WANTS = ".target.wants/"


def save_owners(collector: Collector, node: Node) -> None:
    """Save what node/owners.py and node/runtime.py read of a node."""
    for directory in _DIRECTORIES:
        collector.mark(directory)
    _save_runtime(collector, node)
    for owner in owners_of(node):
        if owner.is_active and owner.id != owners.KUBELET_STATIC:
            for evidence in owner.evidence:
                _save_evidence(collector, owner.id, evidence)
            if owner.id == owners.TUNED:
                collector.file(tuned.PROFILE_MODE)


def _save_runtime(collector: Collector, node: Node) -> None:
    try:
        runtime = runtime_of(node)
    except CPUManagerError:  # such as of Docker, of which nothing is read
        return
    paths = [runtime.config]
    try:
        paths = [file.path for file in read_files(node.tree, runtime)]
    except CPUManagerError:
        if runtime.drop_ins:
            paths += ["%s/%s" % (runtime.drop_ins, name) for name in collector.names(runtime.drop_ins)]
    for path in paths:
        collector.file(path, runtime_redacted)


def _save_evidence(collector: Collector, owner: str, evidence: str) -> None:
    process = _PROCESS.fullmatch(evidence)
    if process is not None:
        path = "/proc/%s/cmdline" % process.group(1)
        collector.add(collector.new_place(path), _PROGRAMS[owner].encode("ascii") + b"\0")
    elif evidence == owners.POLICY_CACHE:
        policy = json.dumps({"PolicyName": owners.POLICIES[owner]})
        collector.file(evidence, lambda _content: policy.encode("ascii"))
    elif _WANTS not in evidence and owner in _CONTENTS:
        collector.file(evidence, _CONTENTS[owner])
    elif evidence.startswith("/"):
        # That it is there is all that counts.
        collector.mark(evidence)


def _profile(content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    # /etc/tuned/active_profile has names of profiles, and no options.
    return content if "=" not in text else tuned.essence(text).encode("utf-8")


# What is saved of the files that show an owner.
_CONTENTS = {
    owners.TUNED: _profile,
    owners.CRIO_INTERRUPTS: runtime_redacted,
    owners.CRIO_SHARED: runtime_redacted,
    owners.GORESCTRL: runtime_redacted,
}
