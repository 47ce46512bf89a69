# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager's checkpoint, the file cpu_manager_state, in all its formats.

    v1  up to Kubernetes 1.17   exclusive CPUs by container id
    v2  1.18 and later          by pod and container name
    v3  1.36                    with CPUs of whole pods, where the gate PodLevelResourceManagers is on
    v4  1.37                    v3, for older kubelets, and once more as one text with its own checksum

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go, state_checkpoint.go) and pkg/kubelet/checkpointmanager.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Sequence

from ..cpuset import MAX_CPUS, CPUSet
from ..errors import InputError
from .assignments import Assignments, State
from .golang import GoError, Number, Object, quote, read_cpus, read_json

FILE_NAME = "cpu_manager_state"
MODE = 0o600

CORRUPTED = "checkpoint is corrupted"

# What the kubelet calls the newest format, and all of them where it makes their sums.
STRUCT = "CPUManagerCheckpoint"

_CPUSET = "{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[%s]}}"

# {container id: (pod UID, container name)}
ContainerIDs = Mapping[str, "tuple[str, str]"]

# The name, which no container can have, of one of which only the id is known; that stands in place of the pod's UID.
NAMELESS = "?"

_MIGRATION_ERRORS = {
    False: "error migrating v1 checkpoint state to v2 checkpoint state: %s",
    True: "failed to migrate checkpoint from v1 to v2: %s",
}
_V2_FIRST_SINCE = 36
_V3_ON_REQUEST_IN = 36
_V4_SINCE = 37
_V1_UNTIL = 17


class CheckpointError(Exception):
    """The kubelet cannot restore its state from this file; the message is the cause it tells."""


class _StoppedError(CheckpointError):
    """Go reads no further, and tells this even if something before was wrong, too."""


def restore_error(cause: object, path: str) -> str:
    """What the kubelet says, as a whole, when it cannot restore its state from the file."""
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

    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        return {
            "policyName": self._read_policy_name,
            "defaultCpuSet": self._read_default_cpu_set,
            "entries": self._read_entries,
            "checksum": self._read_checksum,
        }

    def read(self, data: Any, struct: str) -> None:
        """Take over a JSON document. Raises CheckpointError, in which the format is called `struct`."""
        error = self._read(data, struct)
        if error is not None:
            raise error

    def _read(self, data: Any, struct: str) -> CheckpointError | None:
        """As Go: reads on behind most of what has the wrong type, and tells the first."""
        if data is None:
            return None
        if not isinstance(data, Object):
            return _wrong_type(data, "Go value", "state." + struct)
        first_error = None
        known = {name.rpartition(".")[2].lower(): (name, reader) for name, reader in self.fields().items()}
        for key, value in data:
            name, reader = known.get(_folded(key), ("", None))
            if reader is None:
                continue
            try:
                reader(value, "Go struct field %s.%s" % (struct, name))
            except _StoppedError as error:
                return error
            except CheckpointError as error:
                first_error = first_error or error
        return first_error

    def _read_policy_name(self, value: Any, where: str) -> None:
        self.policy_name = _text(value, self.policy_name, where)

    def _read_default_cpu_set(self, value: Any, where: str) -> None:
        self.default_cpu_set = _text(value, self.default_cpu_set, where)

    def _read_checksum(self, value: Any, where: str) -> None:
        self.checksum = _checksum(value, self.checksum, where)

    def _read_entries(self, value: Any, where: str) -> None:
        self.entries = _mapping(value, self.entries, where, self.entries_type)
        _fill(self.entries, value, lambda text: _text(text, "", where))

    def verify(self) -> None:
        """Raise CheckpointError when the checksum is wrong."""
        if self.zero_is_right and self.checksum == 0:
            return
        if all(self.checksum != self.right_checksum(name) for name in sorted({STRUCT, self.summed_as})):
            raise CheckpointError(CORRUPTED)

    def right_checksum(self, struct: str = STRUCT) -> int:
        """The sum over the text that Go's spew makes of the struct, its checksum 0 and its type of any version."""
        return _fnv(
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
        return _json({**self._members(), "checksum": self.checksum}).encode("utf-8")

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = {"policyName": self.policy_name, "defaultCpuSet": self.default_cpu_set}
        return {**members, "entries": self.entries} if self.entries else members


class Format2(Format1):
    """Exclusive CPUs by pod UID and container name."""

    version = 2
    entries_type = "map[string]map[string]string"

    def _read_entries(self, value: Any, where: str) -> None:
        def containers(inner: Any) -> dict[str, str] | None:
            found = _mapping(inner, None, where, "map[string]string")
            _fill(found, inner, lambda text: _text(text, "", where))
            return found

        self.entries = _mapping(value, self.entries, where, self.entries_type)
        _fill(self.entries, value, containers)

    def state(self) -> State:
        """The state with its sets parsed. Raises CheckpointError as the kubelet does."""
        try:
            default = read_cpus(self.default_cpu_set)
        except GoError as error:
            raise CheckpointError(
                "could not parse default cpu set %s: %s" % (quote(self.default_cpu_set), error)
            ) from error
        assignments: dict[str, dict[str, CPUSet]] = {}
        for pod, containers in (self.entries or {}).items():
            assignments[pod] = {}
            for container, text in (containers or {}).items():
                try:
                    assignments[pod][container] = read_cpus(text)
                except GoError as error:
                    raise CheckpointError(
                        "could not parse cpuset %s for container %s in pod %s: %s"
                        % (quote(text), quote(container), quote(pod), error)
                    ) from error
        return State(default, assignments)


class Format3(Format2):
    """Also CPUs of whole pods."""

    version = 3
    zero_is_right = False

    def __init__(self) -> None:
        super().__init__()
        self.pod_entries: dict[str, CPUSet] | None = {}
        self._pod_cpus = 0

    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        return {**super().fields(), "podEntries": self._read_pod_entries}

    def _read_pod_entries(self, value: Any, where: str) -> None:
        self.pod_entries = _mapping(value, self.pod_entries, where, "state.PodCPUAssignments")
        _fill(self.pod_entries, value, lambda entry: self._pod_entry(entry, where))

    def _pod_entry(self, entry: Any, where: str) -> CPUSet:
        text, error = "", None
        if entry is not None and not isinstance(entry, Object):
            raise _StoppedError(str(_wrong_type(entry, where, "state.podEntryJSON")))
        for key, value in entry or ():
            if _folded(key) == "cpuset":
                try:
                    text = _text(value, text, where + ".cpuSet")
                except CheckpointError as failure:
                    error = error or failure
        if error is not None:
            raise _StoppedError(str(error))
        try:
            cpus = read_cpus(text)
        except GoError as failure:
            raise _StoppedError("failed to parse cpuset: %s" % failure) from failure
        self._pod_cpus += len(cpus)
        # No two pods have the same. A kubelet takes more, but the checksum goes over each of them, which takes time.
        if self._pod_cpus > MAX_CPUS:
            raise _StoppedError("more than %d CPUs in podEntries" % MAX_CPUS)
        return cpus

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


class _Data(Format3):
    """What is in the text of format 4, whose sum stands beside it."""

    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        fields = super().fields()
        del fields["checksum"]
        return fields


class Format4(Format3):
    """A text with the members of format 3 and its checksum; the members themselves, for older kubelets, have none."""

    version = 4

    def __init__(self) -> None:
        super().__init__()
        self.data = ""
        self.data_checksum = 0

    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        # Those of format 3 are, in Go, a struct in the struct.
        own = {"data": self._read_data, "dataChecksum": self._read_data_checksum}
        return {**{"%sV3.%s" % (STRUCT, name): reader for name, reader in super().fields().items()}, **own}

    def _read_data(self, value: Any, where: str) -> None:
        self.data = _text(value, self.data, where)

    def _read_data_checksum(self, value: Any, where: str) -> None:
        self.data_checksum = _checksum(value, self.data_checksum, where)

    def read(self, data: Any, struct: str) -> None:
        """Take over a JSON document: what counts is in its member data. Raises CheckpointError."""
        error = self._read(data, struct)
        if error is not None:
            raise CheckpointError("failed to deserialize cpu manager checkpoint: %s" % error)
        inner = _Data()
        try:
            inner.read(read_json(self.data.encode("utf-8")), STRUCT + "Data")
        except (GoError, CheckpointError) as failure:
            raise CheckpointError("failed to deserialize cpu manager checkpoint data: %s" % failure) from failure
        self.policy_name, self.default_cpu_set = inner.policy_name, inner.default_cpu_set
        self.entries, self.pod_entries = inner.entries, inner.pod_entries

    def verify(self) -> None:
        """Raise CheckpointError when the checksum is wrong."""
        if self.data_checksum != _fnv("(string)" + self.data):
            raise CheckpointError(CORRUPTED)

    def write(self) -> bytes:
        """The bytes that the kubelet writes."""
        self.data = _json(self._members())
        self.data_checksum = _fnv("(string)" + self.data)
        members = {**self._members(), "checksum": 0, "data": self.data, "dataChecksum": self.data_checksum}
        return _json(members).encode("utf-8")


Checkpoint = Format1
FORMATS: tuple[type[Format1], ...] = (Format1, Format2, Format3, Format4)


# --- reading ---------------------------------------------------------------------------------------


def read_checkpoint(
    content: bytes, minor: int, pod_level: bool = False, container_ids: ContainerIDs | None = None
) -> Checkpoint:
    """Read the bytes of a checkpoint as the kubelet 1.`minor` does, 1.18 to 1.37, and no more tolerantly.

    pod_level: the gate PodLevelResourceManagers is on. container_ids: of the containers that run, for format 1.
    Raises CheckpointError.
    """
    try:
        data = read_json(content)
    except GoError as error:
        raise CheckpointError(str(error)) from error
    last_error = CheckpointError(CORRUPTED)
    left_over: Format1 | None = None
    for kind in _attempts(minor, pod_level):
        checkpoint = kind()
        try:
            checkpoint.read(data, _struct(kind, minor))
            if _sums_its_name(kind, pod_level):
                checkpoint.summed_as = _struct(kind, minor)
            checkpoint.verify()
        except CheckpointError as error:
            if isinstance(checkpoint, Format4) and (checkpoint.data or checkpoint.data_checksum):
                raise CheckpointError("could not load v4 checkpoint: %s" % error) from error
            last_error = error
            left_over = checkpoint if kind is Format3 and minor < _V4_SINCE else left_over
            continue
        try:
            return _with_left_over(migrated(checkpoint, container_ids or {}), left_over)
        except CheckpointError as error:
            raise CheckpointError(_MIGRATION_ERRORS[minor >= _V2_FIRST_SINCE] % error) from error
    raise last_error


def _attempts(minor: int, pod_level: bool) -> Sequence[type[Format1]]:
    """The formats in the order in which a kubelet tries them. It tells the failure of the last."""
    if minor >= _V4_SINCE:
        return Format4, Format3, Format2
    if minor < _V2_FIRST_SINCE:
        return Format1, Format2
    return (Format3, Format2, Format1) if pod_level else (Format2, Format1)


def _with_left_over(checkpoint: Checkpoint, left_over: Checkpoint | None) -> Checkpoint:
    """The kubelet 1.36 takes what it reads as format 2 over into what it could not accept as format 3.

    So the CPUs of whole pods in a file of format 4, which has no checksum for it, survive a downgrade.
    """
    if not isinstance(left_over, Format3) or not left_over.pod_entries:
        return checkpoint
    both = Format3()
    both.policy_name, both.default_cpu_set = checkpoint.policy_name, checkpoint.default_cpu_set
    both.entries, both.pod_entries = checkpoint.entries, left_over.pod_entries
    return both


def _sums_its_name(kind: type[Format1], pod_level: bool) -> bool:
    """Whether a kubelet takes a sum with the format's own name for right, too."""
    return kind is Format3 or (kind is Format2 and not pod_level)


def _struct(kind: type[Format1], minor: int) -> str:
    """What that kubelet calls the format: the newest that it knows has no number."""
    newest = 4 if minor >= _V4_SINCE else 3 if minor >= _V2_FIRST_SINCE else 2
    return STRUCT + ("" if kind.version == newest else "V%d" % kind.version)


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


def decode_checkpoint(content: bytes) -> Checkpoint:
    """Read what a checkpoint says whatever its checksum is, to save what a damaged one still says.

    Where more than one format fits, that whose checksum is right. Raises CheckpointError.
    """
    try:
        data = read_json(content)
    except GoError as error:
        raise CheckpointError(str(error)) from error
    members = {_folded(key) for key, _value in data} if isinstance(data, Object) else set()
    # Without CPUs of whole pods, a format 3 is a format 2 with another sum; so is a format 1 without entries.
    kinds: tuple[type[Format1], ...] = (Format2, Format3, Format1)
    if "data" in members:
        # Older kubelets read what is beside the text, and so do we where the text is damaged.
        kinds = (Format4, Format3)
    elif "podentries" in members:
        kinds = (Format3,)
    last_error = CheckpointError(CORRUPTED)
    readable = None
    for kind in kinds:
        checkpoint = kind()
        try:
            checkpoint.read(data, checkpoint.struct)
            readable = readable or checkpoint
            checkpoint.verify()
            return checkpoint
        except CheckpointError as error:
            last_error = error
    if readable is None:
        raise last_error
    return readable


# --- writing ---------------------------------------------------------------------------------------


def format_for(minor: int, pod_level: bool = False) -> type[Format1]:
    """The format that the kubelet 1.`minor` writes."""
    if minor <= _V1_UNTIL:
        return Format1
    if minor >= _V4_SINCE:
        return Format4
    return Format3 if pod_level and minor >= _V3_ON_REQUEST_IN else Format2


def write_checkpoint(
    policy_name: str, state: State, kind: type[Format1] = Format2, container_ids: ContainerIDs | None = None
) -> bytes:
    """The bytes that the kubelet writes for this state. Raises InputError for what that format cannot hold."""
    if state.pod_assignments and kind.version < Format3.version:
        raise InputError(
            "format v%d of the checkpoint cannot hold the CPUs of whole pods (%s); drain the node before"
            " the kubelet changes to a version or configuration without them"
            % (kind.version, ", ".join(sorted(state.pod_assignments)))
        )
    checkpoint = kind()
    checkpoint.fill(policy_name, state)
    if kind is Format1:
        checkpoint.entries = _by_container_id(state.assignments, container_ids or {})
    return checkpoint.write()


def _by_container_id(assignments: Assignments, container_ids: ContainerIDs) -> dict[str, str]:
    ids = {names: container_id for container_id, names in container_ids.items()}
    entries = {}
    for pod, containers in assignments.items():
        for name, cpus in containers.items():
            if (pod, name) not in ids:
                raise InputError(
                    "format v1 of the checkpoint names containers by their ids, and that of container %s of pod %s"
                    " is not given; give container_ids, or drain the node" % (name, pod)
                )
            entries[ids[pod, name]] = str(cpus)
    return dict(sorted(entries.items()))


def assignments_text(assignments: Assignments) -> dict[str, dict[str, str]]:
    """Exclusive CPUs as plain data: {pod UID: {container: CPUs}}."""
    return {
        pod: {container: str(cpus) for container, cpus in sorted(containers.items())}
        for pod, containers in sorted(assignments.items())
    }


def _json(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    # Go escapes these for the sake of browsers.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, "\\u%04x" % ord(character))
    return text


# --- the types of Go -------------------------------------------------------------------------------

_LONGEST_SUM = len(str((1 << 64) - 1))


def _folded(key: str) -> str:
    """The key as Go compares it: in any case, and with the two letters beyond ASCII that are such in other clothes."""
    return key.replace("\u017f", "s").replace("\u212a", "k").lower() if not key.isascii() else key.lower()


def _wrong_type(value: Any, where: str, wanted: str, number: str = "number") -> CheckpointError:
    kinds = {Number: number, str: "string", bool: "bool", list: "array", Object: "object"}
    return CheckpointError("json: cannot unmarshal %s into %s of type %s" % (kinds[type(value)], where, wanted))


def _text(value: Any, before: str, where: str) -> str:
    if value is None:
        return before
    if not isinstance(value, str) or isinstance(value, Number):
        raise _wrong_type(value, where, "string")
    return value


def _checksum(value: Any, before: int, where: str) -> int:
    if value is None:
        return before
    if not isinstance(value, Number):
        raise _wrong_type(value, where, "checksum.Checksum")
    if not value.isdigit() or len(value) > _LONGEST_SUM or int(value) >= 1 << 64:
        raise _wrong_type(value, where, "checksum.Checksum", "number %s" % value)
    return int(value)


def _mapping(value: Any, before: dict[str, Any] | None, where: str, wanted: str) -> dict[str, Any] | None:
    """What becomes of a map before the members of an object are added to it: null makes it nil."""
    if value is None:
        return None
    if not isinstance(value, Object):
        raise _wrong_type(value, where, wanted)
    return {} if before is None else before


def _fill(found: dict[str, Any] | None, members: Any, read: Callable[[Any], Any]) -> None:
    """Add the members to the map, up to the first that cannot be read."""
    if found is not None:
        for key, member in members:
            found[key] = read(member)


def _spew(value: Any) -> str:
    """A map as Go's spew prints it: by key, in the order of the keys' bytes."""
    if value is None:
        return "<nil>"
    if not isinstance(value, dict):
        return str(value)
    items = sorted(value.items(), key=lambda item: item[0].encode("utf-8"))
    return "map[%s]" % " ".join("%s:%s" % (key, _spew(inner)) for key, inner in items)


def _fnv(text: str) -> int:
    """The 32-bit FNV-1a sum."""
    value = 0x811C9DC5
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
