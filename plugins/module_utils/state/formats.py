# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checkpoint's formats 1 to 4: their members, their checksums, the bytes that a kubelet writes, and which versions
have which.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go) and pkg/kubelet/checkpointmanager.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .._base.errors import InputError
from .._base.golang import json_text
from ..cpuset import CPUSet
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
        """Return the sum over the text that Go's spew makes of the struct, its checksum 0 and its type of any
        version."""
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
        """Return the state with its sets parsed. Raises CheckpointError as the kubelet does."""
        # Without the containers' ids, there is one only where no container has exclusive CPUs.
        return migrated(self, {}).state()

    def fill(self, policy_name: str, state: State) -> None:
        """Take over a state, in the order in which it is written."""
        self.policy_name = policy_name
        self.default_cpu_set = str(state.default_cpu_set)
        self.entries = assignments_text(state.assignments)

    def write(self) -> bytes:
        """Return the bytes that the kubelet writes."""
        # Imported here: a node's checkpoint is read far more often than one is written.
        from .._base.golang import json_text

        self.checksum = self.right_checksum()
        return json_text({**self.members(), "checksum": self.checksum}).encode("utf-8")

    def members(self) -> dict[str, Any]:
        """Return what is written beside the checksum."""
        members: dict[str, Any] = {"policyName": self.policy_name, "defaultCpuSet": self.default_cpu_set}
        return {**members, "entries": self.entries} if self.entries else members


class Format2(Format1):
    """Exclusive CPUs by pod UID and container name."""

    version = 2
    entries_type = "map[string]map[string]string"

    def state(self) -> State:
        """Return the state with its sets parsed. Raises CheckpointError as the kubelet does."""
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
    """Return the checkpoint in a format that names pods. Raises CheckpointError for a container whose pod is not
    known."""
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
    """Return the CPU set of a text. Raises CheckpointError, which says `where` it is, as the kubelet does."""
    try:
        return CPUSet.parse_plain(text)
    except InputError:
        from .._base.errors import GoError
        from .._base.golang import quote, read_cpus
    try:
        # It takes more, such as "+1".
        return read_cpus(text)
    except GoError as error:
        raise CheckpointError("%s: %s" % (where % tuple(map(quote, names)), error)) from error


def spew(value: object) -> str:
    """Return a map as Go's spew prints it: by key, in the order of the keys' bytes."""
    if value is None:
        return "<nil>"
    if not isinstance(value, dict):
        return str(value)
    items = sorted(value.items(), key=lambda item: item[0].encode("utf-8"))
    return "map[%s]" % " ".join("%s:%s" % (key, spew(inner)) for key, inner in items)


def fnv(text: str) -> int:
    """Return the 32-bit FNV-1a sum."""
    value = 0x811C9DC5
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


# The checkpoint's formats 3 and 4, which also have the CPUs of whole pods.
#
# Format 4 is from the threads and KEPs, and was not replayed against a 1.37 kubelet: its members, and that its text
# counts, from the pull requests 139102 and 139087 and KEP-5526; the checksum of the text from the tests of pull request
# 137820, which sum such a text. Two other forms were proposed: the members of v3 with checksum 0 beside the text
# (139103,
# closed), and the text alone with its checksum in `checksum` (137820, reverted). Both are read, neither is written.
#
# Its source: pkg/kubelet/cm/cpumanager/state (checkpoint.go).


_CPUSET = "{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[%s]}}"


class Format3(Format2):
    """Format 3: with the CPUs of whole pods."""

    version = 3
    zero_is_right = False

    def __init__(self) -> None:
        super().__init__()
        self.pod_entries: dict[str, CPUSet] | None = {}

    def _spew_more(self) -> str:
        pods = None
        if self.pod_entries is not None:
            pods = {pod: _CPUSET % " ".join("%d:{}" % cpu for cpu in cpus) for pod, cpus in self.pod_entries.items()}
        return " PodEntries:(state.PodCPUAssignments)%s" % spew(pods)

    def state(self) -> State:
        """Return the state with its sets parsed. Raises CheckpointError as the kubelet does."""
        return super().state()._replace(pod_assignments=self.pod_entries or {})

    def fill(self, policy_name: str, state: State) -> None:
        """Take over a state, in the order in which it is written."""
        super().fill(policy_name, state)
        self.pod_entries = dict(sorted(state.pod_assignments.items()))

    def members(self) -> dict[str, Any]:
        """Return what is written beside the checksum."""
        members = super().members()
        if self.pod_entries:
            entries = self.pod_entries.items()
            members["podEntries"] = {pod: {"cpuSet": str(cpus)} if cpus else {} for pod, cpus in entries}
        return members


class Format4(Format3):
    """A text with the members of format 3 and its checksum; beside it a whole format 2, for older kubelets."""

    version = 4

    def __init__(self) -> None:
        super().__init__()
        self.outer = Format2()
        self.data = ""
        self.data_checksum = 0
        # The members of the text that are not known here, as golang.read_json() gives them: [(name, value)].
        self.others: list[tuple[str, object]] = []

    def verify(self) -> None:
        """Raise CheckpointError when the checksum of the text is wrong, which is the only one that counts."""
        if not self.text_is_right:
            raise CheckpointError(CORRUPTED)

    @property
    def text_is_right(self) -> bool:
        """Whether the checksum of the text is right."""
        return self.data_checksum == self.right_data_checksum()

    def right_data_checksum(self) -> int:
        """Return the sum over what Go's spew makes of the text."""
        return fnv("(string)" + self.data)

    def take_outer(self, outer: Format2) -> None:
        """Take over what stands beside the text."""
        self.policy_name, self.default_cpu_set, self.entries = outer.policy_name, outer.default_cpu_set, outer.entries

    @property
    def outer_is_right(self) -> bool:
        """Whether older kubelets read the same, but for the CPUs of whole pods, with a checksum that they verify."""
        outer = self.outer
        same = (outer.policy_name, outer.default_cpu_set) == (self.policy_name, self.default_cpu_set)
        return same and (outer.entries or {}) == (self.entries or {}) and outer.checksum == outer.right_checksum()

    def write(self) -> bytes:
        """Return the bytes that the kubelet writes."""
        self.data = json_text(self.members())
        if self.others:
            from .._base.golang import write_json

            members = ("%s:%s" % (json_text(name), write_json(value)) for name, value in self.others)
            self.data = "%s,%s}" % (self.data[:-1], ",".join(members))
        self.data_checksum = self.right_data_checksum()
        outer = Format2()
        outer.policy_name, outer.default_cpu_set, outer.entries = self.policy_name, self.default_cpu_set, self.entries
        self.outer, self.checksum = outer, outer.right_checksum()
        outer.checksum = self.checksum
        members_of_all = {
            **outer.members(),
            "checksum": self.checksum,
            "data": self.data,
            "dataChecksum": self.data_checksum,
        }
        return json_text(members_of_all).encode("utf-8")


FORMATS: tuple[type[Format1], ...] = (Format1, Format2, Format3, Format4)


# Which format of the checkpoint each version of Kubernetes reads and writes.


class Era(NamedTuple):
    """What the kubelets from 1.`since` on do with the file, until the next era. Formats are named by their numbers."""

    since: int
    # The formats in the order in which they are tried, and the one that is written.
    reads: tuple[int, ...]
    writes: int
    # The same with the feature gate PodLevelResourceManagers.
    pod_level_reads: tuple[int, ...]
    pod_level_writes: int
    # The complaint about a format 1 whose containers are not known.
    migration_error: str
    # Whether the CPUs of whole pods in a format 3 that fails are kept beside what is read as format 2.
    keeps_left_over: bool = False

    @property
    def newest(self) -> int:
        """The newest format that is known: what the kubelet calls it has no number."""
        return max(self.pod_level_reads)


_TO_V2 = "error migrating v1 checkpoint state to v2 checkpoint state: %s"
_FROM_V1 = "failed to migrate checkpoint from v1 to v2: %s"

# The next version that changes something is one more row.
ERAS = (
    Era(0, (1, 2), 1, (1, 2), 1, _TO_V2),
    Era(18, (1, 2), 2, (1, 2), 2, _TO_V2),
    Era(36, (2, 1), 2, (3, 2, 1), 3, _FROM_V1, keeps_left_over=True),
    Era(37, (4, 3, 2, 1), 4, (4, 3, 2, 1), 4, _FROM_V1),
)


def era_of(minor: int) -> Era:
    """Return what the kubelet 1.`minor` does with the file."""
    return next(era for era in reversed(ERAS) if minor >= era.since)


def since_of(version: int) -> int:
    """Return the minor version of the first kubelet that writes this format."""
    return next(era.since for era in ERAS if version in (era.writes, era.pod_level_writes))


def cause_of_pods(version: int | None, state: State | None, pooled: CPUSet, minor: int, pod_level: bool) -> str:
    """Return a remark, to append, on pods with CPUs as a whole, by which a file is refused; empty where it has none.

    version, state: what is in the file. pooled: the CPUs that it has to cover.
    """
    era = era_of(minor)
    reads = era.pod_level_reads if pod_level else era.reads
    if version == Format3.version and version not in reads:
        return "; kubelets without the feature gate PodLevelResourceManagers do not read its format v3"
    if state is None or not state.pod_assignments:
        return ""
    lost = pooled - state.default_cpu_set - state.exclusive_cpus()
    if lost:
        return "; CPUs %s are nobody's: a kubelet that starts while pods have CPUs as a whole can lose them" % lost
    own = CPUSet(cpu for containers in state.assignments.values() for cpus in containers.values() for cpu in cpus)
    unused = state.exclusive_cpus() - own
    is_read = pod_level and (version != Format4.version or version in reads)
    text = "; this kubelet does not read the CPUs of pods as a whole in this file, and of these, no container has %s"
    return text % unused if unused and not is_read else ""
