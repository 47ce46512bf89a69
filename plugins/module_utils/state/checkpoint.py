# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager's checkpoint, the file cpu_manager_state, in all its formats.

    v1  up to Kubernetes 1.17   exclusive CPUs by container id
    v2  1.18 and later          by pod and container name
    v3  1.36                    with CPUs of whole pods, where the gate PodLevelResourceManagers is on
    v4  1.37                    v2, for older kubelets, and a text with all of v3 and its own checksum

What a kubelet itself wrote is read here at once; decoding.py looks at everything else as closely as Go does.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go, state_checkpoint.go) and pkg/kubelet/checkpointmanager.
Format 4 is from the threads and KEPs, and was not replayed against a 1.37 kubelet: its members, and that its text
counts, from the pull requests 139102 and 139087 and KEP-5526; the checksum of the text from the tests of pull request
137820, which sum such a text. Two other forms were proposed: the members of v3 with checksum 0 beside the text (139103,
closed), and the text alone with its checksum in `checksum` (137820, reverted). Both are read, neither is written.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping, NamedTuple

from ..cpuset import CPUSet
from ..errors import InputError, option
from .assignments import Assignments, State, assignments_text

MODE = 0o600

CORRUPTED = "checkpoint is corrupted"

# What the kubelet calls the newest format, and all of them where it makes their sums.
STRUCT = "CPUManagerCheckpoint"

_CPUSET = "{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[%s]}}"

# {container id: (pod UID, container name)}
ContainerIDs = Mapping[str, "tuple[str, str]"]

# The name, which no container can have, of one of which only the id is known; that stands in place of the pod's UID.
NAMELESS = "?"


class Era(NamedTuple):
    """What the kubelets from 1.`since` on do with the file, until the next era. Formats are told by their numbers."""

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
    """What the kubelet 1.`minor` does with the file."""
    return next(era for era in reversed(ERAS) if minor >= era.since)


def since_of(version: int) -> int:
    """The minor version of the first kubelet that writes this format."""
    return next(era.since for era in ERAS if version in (era.writes, era.pod_level_writes))


class CheckpointError(Exception):
    """The kubelet cannot restore its state from this file; the message is the cause it tells."""


def restore_error(cause: object, path: str) -> str:
    """What the kubelet says, as a whole, when it cannot restore its state from the file."""
    from ..golang import quote

    return (
        "could not restore state from checkpoint: %s, please drain this node and delete the CPU manager checkpoint"
        " file %s before restarting Kubelet" % (cause, quote(path))
    )


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
                _spew(self.entries),
                self._spew_more(),
            )
        )

    def _spew_more(self) -> str:
        return ""

    def state(self) -> State:
        """The state with its sets parsed. Raises CheckpointError as the kubelet does."""
        # Without the containers' ids, there is one only where no container has CPUs of its own.
        return migrated(self, {}).state()

    def fill(self, policy_name: str, state: State) -> None:
        """Take over a state, in the order in which it is written."""
        self.policy_name = policy_name
        self.default_cpu_set = str(state.default_cpu_set)
        self.entries = assignments_text(state.assignments)

    def write(self) -> bytes:
        """The bytes that the kubelet writes."""
        self.checksum = self.right_checksum()
        return json_text({**self._members(), "checksum": self.checksum}).encode("utf-8")

    def _members(self) -> dict[str, Any]:
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
        for pod, containers in (self.entries or {}).items():
            assignments[pod] = {}
            for container, text in (containers or {}).items():
                where = "could not parse cpuset %s for container %s in pod %s"
                assignments[pod][container] = _cpus(text, where, text, container, pod)
        return State(default, assignments)


class Format3(Format2):
    """Also CPUs of whole pods."""

    version = 3
    zero_is_right = False

    def __init__(self) -> None:
        super().__init__()
        self.pod_entries: dict[str, CPUSet] | None = {}

    def _spew_more(self) -> str:
        pods = None
        if self.pod_entries is not None:
            pods = {pod: _CPUSET % " ".join("%d:{}" % cpu for cpu in cpus) for pod, cpus in self.pod_entries.items()}
        return " PodEntries:(state.PodCPUAssignments)%s" % _spew(pods)

    def state(self) -> State:
        """The state with its sets parsed. Raises CheckpointError as the kubelet does."""
        return super().state()._replace(pod_assignments=self.pod_entries or {})

    def fill(self, policy_name: str, state: State) -> None:
        """Take over a state, in the order in which it is written."""
        super().fill(policy_name, state)
        self.pod_entries = dict(sorted(state.pod_assignments.items()))

    def _members(self) -> dict[str, Any]:
        members = super()._members()
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
        self.others: list[tuple[str, Any]] = []

    def verify(self) -> None:
        """Raise CheckpointError when the checksum of the text is wrong, which is the only one that counts."""
        if not self.text_is_right:
            raise CheckpointError(CORRUPTED)

    @property
    def text_is_right(self) -> bool:
        """Whether the checksum of the text is right."""
        return self.data_checksum == self.right_data_checksum()

    def right_data_checksum(self) -> int:
        """The sum over what Go's spew makes of the text."""
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
        """The bytes that the kubelet writes."""
        self.data = json_text(self._members())
        if self.others:
            from .decoding import write_json

            members = ("%s:%s" % (json_text(name), write_json(value)) for name, value in self.others)
            self.data = "%s,%s}" % (self.data[:-1], ",".join(members))
        self.data_checksum = self.right_data_checksum()
        outer = Format2()
        outer.policy_name, outer.default_cpu_set, outer.entries = self.policy_name, self.default_cpu_set, self.entries
        self.outer, self.checksum = outer, outer.right_checksum()
        outer.checksum = self.checksum
        members_of_all = {
            **outer._members(),
            "checksum": self.checksum,
            "data": self.data,
            "dataChecksum": self.data_checksum,
        }
        return json_text(members_of_all).encode("utf-8")


Checkpoint = Format1
FORMATS: tuple[type[Format1], ...] = (Format1, Format2, Format3, Format4)


# --- reading ---------------------------------------------------------------------------------------


def read_checkpoint(
    content: bytes, minor: int, pod_level: bool = False, container_ids: ContainerIDs | None = None
) -> Checkpoint:
    """Read the bytes of a checkpoint as the kubelet 1.`minor` does, 1.18 and later, and no more tolerantly.

    pod_level: the gate PodLevelResourceManagers is on. container_ids: of the containers that run, for format 1.
    Raises CheckpointError.
    """
    checkpoint = _read_plain(content)
    if checkpoint is None:
        from .decoding import read_exactly

        return read_exactly(content, minor, pod_level, container_ids or {})
    if isinstance(checkpoint, Format4) and checkpoint.version not in era_of(minor).reads:
        return checkpoint.outer
    return checkpoint


def decode_checkpoint(content: bytes) -> Checkpoint:
    """Read what a checkpoint says whatever its checksum is, to save what a damaged one still says.

    Where more than one format fits, that whose checksum is right. Of a format 4 whose text is damaged, what stands
    beside it if that is not, with the CPUs of whole pods as far as they can be read. Raises CheckpointError.
    """
    checkpoint = _read_plain(content)
    if checkpoint is None:
        from .decoding import decode

        return decode(content)
    return checkpoint


def other_members(content: bytes | None) -> list[tuple[str, Any]]:
    """The members of the text of a format 4 that are not known here, such as a newer kubelet's: [(name, value)]."""
    if content is None:
        return []
    try:
        checkpoint = decode_checkpoint(content)
    except CheckpointError:
        return []
    return checkpoint.others if isinstance(checkpoint, Format4) else []


def _read_plain(content: bytes) -> Format2 | None:
    """A checkpoint as kubelets write it, which no kubelet reads in two ways; None where that is not sure.

    A format 2, which every kubelet since 1.18 reads as that, or a format 4 without CPUs of whole pods.
    """
    try:
        text = content.decode("ascii")
        # Go and Python disagree on some escapes, not on that of a quotation mark.
        data = None if "\\" in text.replace('\\"', "") else json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    beside = [data.pop(name) for name in ("data", "dataChecksum") if name in data]
    checkpoint = _plain_members(data)
    if checkpoint is None or not checkpoint.checksum or checkpoint.checksum != checkpoint.right_checksum():
        return None
    return _read_plain_text(checkpoint, *beside) if len(beside) == 2 else None if beside else checkpoint


def _read_plain_text(outer: Format2, text: Any, number: Any) -> Format4 | None:
    checkpoint = Format4()
    if not isinstance(text, str) or not isinstance(number, int):
        return None
    checkpoint.data, checkpoint.data_checksum = text, number
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    inner = _plain_members(data) if isinstance(data, dict) and "checksum" not in data else None
    if inner is None or not number or not checkpoint.text_is_right:
        return None
    checkpoint.take_outer(inner)
    checkpoint.outer, checkpoint.checksum = outer, outer.checksum
    return checkpoint


def _plain_members(data: dict[str, Any]) -> Format2 | None:
    """A format 2 of these members, whatever its checksum; None unless each of them has the type that Go wants."""
    if not data.keys() <= {"policyName", "defaultCpuSet", "entries", "checksum"}:
        return None
    checkpoint = Format2()
    checkpoint.policy_name, checkpoint.default_cpu_set = data.get("policyName", ""), data.get("defaultCpuSet", "")
    checkpoint.entries, checkpoint.checksum = data.get("entries", {}), data.get("checksum", 0)
    texts: list[Any] = [checkpoint.policy_name, checkpoint.default_cpu_set]
    for containers in checkpoint.entries.values() if isinstance(checkpoint.entries, dict) else [None]:
        texts += containers.values() if isinstance(containers, dict) else [None]
    if not all(isinstance(text, str) for text in texts) or not isinstance(checkpoint.checksum, int):
        return None
    return checkpoint


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a key is there twice")
    return found


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


# --- writing ---------------------------------------------------------------------------------------


def format_for(minor: int, pod_level: bool = False) -> type[Format1]:
    """The format that the kubelet 1.`minor` writes."""
    era = era_of(minor)
    return FORMATS[(era.pod_level_writes if pod_level else era.writes) - 1]


def write_checkpoint(
    policy_name: str,
    state: State,
    kind: type[Format1] = Format2,
    container_ids: ContainerIDs | None = None,
    others: Iterable[tuple[str, Any]] = (),
) -> bytes:
    """The bytes that the kubelet writes for this state. Raises InputError for what that format cannot hold.

    others: other_members() of the file before, which format 4 keeps and all others drop.
    """
    if state.pod_assignments and kind.version < Format3.version:
        raise InputError(
            "format v%d of the checkpoint cannot hold the CPUs of whole pods (%s)"
            % (kind.version, ", ".join(sorted(state.pod_assignments))),
            remedy="drain the node before the kubelet changes to a version or configuration without them",
        )
    checkpoint = kind()
    checkpoint.fill(policy_name, state)
    if kind is Format1:
        checkpoint.entries = _by_container_id(state.assignments, container_ids or {})
    if isinstance(checkpoint, Format4):
        checkpoint.others = list(others)
    return checkpoint.write()


def _by_container_id(assignments: Assignments, container_ids: ContainerIDs) -> dict[str, str]:
    ids = {names: container_id for container_id, names in container_ids.items()}
    entries = {}
    for pod, containers in assignments.items():
        for name, cpus in containers.items():
            if (pod, name) not in ids:
                raise InputError(
                    "format v1 of the checkpoint names containers by their ids, and that of container %s of pod %s"
                    " is not given" % (name, pod),
                    remedy="give %s, or drain the node" % option("container_ids"),
                )
            entries[ids[pod, name]] = str(cpus)
    return dict(sorted(entries.items()))


def json_text(value: Any) -> str:
    """The text of a value, as Go writes it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    # Go escapes these for the sake of browsers.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, "\\u%04x" % ord(character))
    return text


def _spew(value: Any) -> str:
    """A map as Go's spew prints it: by key, in the order of the keys' bytes."""
    if value is None:
        return "<nil>"
    if not isinstance(value, dict):
        return str(value)
    items = sorted(value.items(), key=lambda item: item[0].encode("utf-8"))
    return "map[%s]" % " ".join("%s:%s" % (key, _spew(inner)) for key, inner in items)


def fnv(text: str) -> int:
    """The 32-bit FNV-1a sum."""
    value = 0x811C9DC5
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
