# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checkpoint's formats 1 and 2: their members, their checksums, and the bytes that a kubelet writes.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go) and pkg/kubelet/checkpointmanager.
"""

from __future__ import annotations

from typing import Any, Mapping

from ..cpuset import CPUSet
from ..errors import InputError
from .assignments import State, assignments_text

CORRUPTED = "checkpoint is corrupted"

# What the kubelet calls the newest format, and all of them where it makes their sums.
STRUCT = "CPUManagerCheckpoint"

# Of all sets of a checkpoint together, each up to its highest CPU: of 8,192 containers on 8,192 CPUs. A kubelet takes
# more, but no machine has it, and a small file would take much memory.
MOST_BITS = 1 << 26
TOO_MANY_BITS = "the CPU sets have more than %d bits together" % MOST_BITS

# {container id: (pod UID, container name)}
ContainerIDs = Mapping[str, "tuple[str, str]"]

# The name, which no container can have, of one of which only the id is known; that stands in place of the pod's UID.
NAMELESS = "?"


class CheckpointError(Exception):
    """The kubelet cannot restore its state from this file; the message is the cause that it gives."""


class Format1:
    """Exclusive CPUs by container id; what all formats have in common.

    The sets are still texts. `entries` is None where the file says null.
    """

    version = 1
    entries_type = "map[string]string"
    # Whether a checksum of 0 is as good as the right one.
    zero_is_right = True

    def __init__(self) -> None:
        self.policy_name = ""
        self.default_cpu_set = ""
        self.entries: dict[str, Any] | None = {}
        self.checksum = 0
        # A name of the struct whose sum is as right as that of STRUCT.
        self.summed_as = STRUCT

    @property
    def struct(self) -> str:
        """What the kubelet 1.36 calls it."""
        return "%sV%d" % (STRUCT, self.version)

    def verify(self) -> None:
        """Raise CheckpointError when the checksum is wrong."""
        if self.zero_is_right and self.checksum == 0:
            return
        if all(self.checksum != self.right_checksum(name) for name in sorted({STRUCT, self.summed_as})):
            raise CheckpointError(CORRUPTED)

    def right_checksum(self, struct: str = STRUCT) -> int:
        """The sum over the text that Go's spew makes of the struct, its checksum 0 and its type of any version."""
        return fnv(
            "(*state.%s){PolicyName:(string)%s DefaultCPUSet:(string)%s Entries:(%s)%s%s Checksum:(checksum.Checksum)0}"
            % (
                struct,
                self.policy_name,
                self.default_cpu_set,
                self.entries_type,
                spew(self.entries),
                self._spew_more(),
            )
        )

    def _spew_more(self) -> str:
        return ""

    def state(self) -> State:
        """The state with its sets parsed. Raises CheckpointError as the kubelet does."""
        # Without the containers' ids, there is one only where no container has exclusive CPUs.
        return migrated(self, {}).state()

    def fill(self, policy_name: str, state: State) -> None:
        """Take over a state, in the order in which it is written."""
        self.policy_name = policy_name
        self.default_cpu_set = str(state.default_cpu_set)
        self.entries = assignments_text(state.assignments)

    def write(self) -> bytes:
        """The bytes that the kubelet writes."""
        # Imported here: a node's checkpoint is read far more often than one is written.
        from ..golang import json_text

        self.checksum = self.right_checksum()
        return json_text({**self.members(), "checksum": self.checksum}).encode("utf-8")

    def members(self) -> dict[str, Any]:
        """What is written beside the checksum."""
        members: dict[str, Any] = {"policyName": self.policy_name, "defaultCpuSet": self.default_cpu_set}
        return {**members, "entries": self.entries} if self.entries else members


class Format2(Format1):
    """Exclusive CPUs by pod UID and container name."""

    version = 2
    entries_type = "map[string]map[string]string"

    def state(self) -> State:
        """The state with its sets parsed. Raises CheckpointError as the kubelet does."""
        default = _cpus(self.default_cpu_set, "could not parse default cpu set %s", self.default_cpu_set)
        assignments: dict[str, dict[str, CPUSet]] = {}
        bits = 0
        for pod, containers in (self.entries or {}).items():
            assignments[pod] = {}
            for container, text in (containers or {}).items():
                where = "could not parse cpuset %s for container %s in pod %s"
                cpus = assignments[pod][container] = _cpus(text, where, text, container, pod)
                bits += cpus.mask.bit_length()
                if bits > MOST_BITS:
                    raise CheckpointError(TOO_MANY_BITS)
        return State(default, assignments)


Checkpoint = Format1


def migrated(old: Checkpoint, container_ids: ContainerIDs) -> Checkpoint:
    """The same in a format that names pods. Raises CheckpointError for a container whose pod is not known."""
    if old.version != Format1.version:
        return old
    checkpoint = Format2()
    checkpoint.policy_name, checkpoint.default_cpu_set = old.policy_name, old.default_cpu_set
    entries: dict[str, dict[str, str]] = {}
    # The kubelet goes through them in random order.
    for container_id, cpus in sorted((old.entries or {}).items()):
        if container_id not in container_ids:
            raise CheckpointError("containerID '%s' not found in initial containers list" % container_id)
        pod, name = container_ids[container_id]
        entries.setdefault(pod, {})[name] = cpus
    checkpoint.entries = entries
    return checkpoint


def _cpus(text: str, where: str, *names: str) -> CPUSet:
    """The CPU set of a text. Raises CheckpointError, which says `where` it is, as the kubelet does."""
    try:
        return CPUSet.parse_plain(text)
    except InputError:
        from ..errors import GoError
        from ..golang import quote, read_cpus
    try:
        # It takes more, such as "+1".
        return read_cpus(text)
    except GoError as error:
        raise CheckpointError("%s: %s" % (where % tuple(map(quote, names)), error)) from error


def spew(value: object) -> str:
    """A map as Go's spew prints it: by key, in the order of the keys' bytes."""
    if value is None:
        return "<nil>"
    if not isinstance(value, dict):
        return str(value)
    items = sorted(value.items(), key=lambda item: item[0].encode("utf-8"))
    return "map[%s]" % " ".join("%s:%s" % (key, spew(inner)) for key, inner in items)


def fnv(text: str) -> int:
    """The 32-bit FNV-1a sum."""
    value = 0x811C9DC5
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
