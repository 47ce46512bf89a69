# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a checkpoint as closely as the kubelet does: what Go accepts, in which order, and how it complains.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go, state_checkpoint.go) and encoding/json (decode.go).
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ..cpuset import MAX_CPUS, CPUSet
from .checkpoint import (
    CORRUPTED,
    STRUCT,
    V4_SINCE,
    Checkpoint,
    CheckpointError,
    ContainerIDs,
    Format1,
    Format2,
    Format3,
    Format4,
    migrated,
)
from .golang import GoError, Number, Object, read_cpus, read_json

_MIGRATION_ERRORS = {
    False: "error migrating v1 checkpoint state to v2 checkpoint state: %s",
    True: "failed to migrate checkpoint from v1 to v2: %s",
}
_V2_FIRST_SINCE = 36


class _StoppedError(CheckpointError):
    """Go reads no further, and tells this even if something before was wrong, too."""


class _Reader1:
    """Reads the members of a JSON object into a checkpoint, which a kubelet calls `struct`."""

    def __init__(self, checkpoint: Any, struct: str) -> None:
        self.checkpoint = checkpoint
        self.struct = struct

    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        return {
            "policyName": self._read_policy_name,
            "defaultCpuSet": self._read_default_cpu_set,
            "entries": self._read_entries,
            "checksum": self._read_checksum,
        }

    def read(self, data: Any) -> None:
        """Take over a JSON document. Raises CheckpointError."""
        error = self._read(data)
        if error is not None:
            raise error

    def _read(self, data: Any) -> CheckpointError | None:
        """As Go: reads on behind most of what has the wrong type, and tells the first."""
        if data is None:
            return None
        if not isinstance(data, Object):
            return _wrong_type(data, "Go value", "state." + self.struct)
        first_error = None
        known = {name.rpartition(".")[2].lower(): (name, reader) for name, reader in self.fields().items()}
        for key, value in data:
            name, reader = known.get(_folded(key), ("", None))
            if reader is None:
                continue
            try:
                reader(value, "Go struct field %s.%s" % (self.struct, name))
            except _StoppedError as error:
                return error
            except CheckpointError as error:
                first_error = first_error or error
        return first_error

    def _read_policy_name(self, value: Any, where: str) -> None:
        self.checkpoint.policy_name = _text(value, self.checkpoint.policy_name, where)

    def _read_default_cpu_set(self, value: Any, where: str) -> None:
        self.checkpoint.default_cpu_set = _text(value, self.checkpoint.default_cpu_set, where)

    def _read_checksum(self, value: Any, where: str) -> None:
        self.checkpoint.checksum = _checksum(value, self.checkpoint.checksum, where)

    def _read_entries(self, value: Any, where: str) -> None:
        self.checkpoint.entries = _mapping(value, self.checkpoint.entries, where, self.checkpoint.entries_type)
        _fill(self.checkpoint.entries, value, lambda text: _text(text, "", where))


class _Reader2(_Reader1):
    def _read_entries(self, value: Any, where: str) -> None:
        def containers(inner: Any) -> dict[str, str] | None:
            found = _mapping(inner, None, where, "map[string]string")
            _fill(found, inner, lambda text: _text(text, "", where))
            return found

        self.checkpoint.entries = _mapping(value, self.checkpoint.entries, where, self.checkpoint.entries_type)
        _fill(self.checkpoint.entries, value, containers)


class _Reader3(_Reader2):
    _pod_cpus = 0

    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        return {**super().fields(), "podEntries": self._read_pod_entries}

    def _read_pod_entries(self, value: Any, where: str) -> None:
        self.checkpoint.pod_entries = _mapping(value, self.checkpoint.pod_entries, where, "state.PodCPUAssignments")
        _fill(self.checkpoint.pod_entries, value, lambda entry: self._pod_entry(entry, where))

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


class _DataReader(_Reader3):
    """Of what is in the text of format 4, whose sum stands beside it."""

    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        fields = super().fields()
        del fields["checksum"]
        return fields


class _Reader4(_Reader3):
    def fields(self) -> dict[str, Callable[[Any, str], None]]:
        """What reads each member of the JSON object, by name."""
        # Those of format 3 are, in Go, a struct in the struct.
        own = {"data": self._read_data, "dataChecksum": self._read_data_checksum}
        return {**{"%sV3.%s" % (STRUCT, name): reader for name, reader in super().fields().items()}, **own}

    def _read_data(self, value: Any, where: str) -> None:
        self.checkpoint.data = _text(value, self.checkpoint.data, where)

    def _read_data_checksum(self, value: Any, where: str) -> None:
        self.checkpoint.data_checksum = _checksum(value, self.checkpoint.data_checksum, where)

    def read(self, data: Any) -> None:
        """Take over a JSON document: what counts is in its member data. Raises CheckpointError."""
        error = self._read(data)
        if error is not None:
            raise CheckpointError("failed to deserialize cpu manager checkpoint: %s" % error)
        inner = Format3()
        try:
            _DataReader(inner, STRUCT + "Data").read(read_json(self.checkpoint.data.encode("utf-8")))
        except (GoError, CheckpointError) as failure:
            raise CheckpointError("failed to deserialize cpu manager checkpoint data: %s" % failure) from failure
        self.checkpoint.policy_name, self.checkpoint.default_cpu_set = inner.policy_name, inner.default_cpu_set
        self.checkpoint.entries, self.checkpoint.pod_entries = inner.entries, inner.pod_entries


_READERS = {1: _Reader1, 2: _Reader2, 3: _Reader3, 4: _Reader4}


def _reader(checkpoint: Checkpoint, struct: str) -> _Reader1:
    return _READERS[checkpoint.version](checkpoint, struct)


# --- formats ---------------------------------------------------------------------------------------


def read_exactly(content: bytes, minor: int, pod_level: bool, container_ids: ContainerIDs) -> Checkpoint:
    """See read_checkpoint()."""
    try:
        data = read_json(content)
    except GoError as error:
        raise CheckpointError(str(error)) from error
    last_error = CheckpointError(CORRUPTED)
    left_over: Format1 | None = None
    for kind in _attempts(minor, pod_level):
        checkpoint = kind()
        try:
            _reader(checkpoint, _struct(kind, minor)).read(data)
            if _sums_its_name(kind, pod_level):
                checkpoint.summed_as = _struct(kind, minor)
            checkpoint.verify()
        except CheckpointError as error:
            if isinstance(checkpoint, Format4) and (checkpoint.data or checkpoint.data_checksum):
                raise CheckpointError("could not load v4 checkpoint: %s" % error) from error
            last_error = error
            left_over = checkpoint if kind is Format3 and minor < V4_SINCE else left_over
            continue
        try:
            return _with_left_over(migrated(checkpoint, container_ids), left_over)
        except CheckpointError as error:
            raise CheckpointError(_MIGRATION_ERRORS[minor >= _V2_FIRST_SINCE] % error) from error
    raise last_error


def _attempts(minor: int, pod_level: bool) -> Sequence[type[Format1]]:
    """The formats in the order in which a kubelet tries them. It tells the failure of the last."""
    if minor >= V4_SINCE:
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
    newest = 4 if minor >= V4_SINCE else 3 if minor >= _V2_FIRST_SINCE else 2
    return STRUCT + ("" if kind.version == newest else "V%d" % kind.version)


def decode(content: bytes) -> Checkpoint:
    """See decode_checkpoint()."""
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
            _reader(checkpoint, checkpoint.struct).read(data)
            readable = readable or checkpoint
            checkpoint.verify()
            return checkpoint
        except CheckpointError as error:
            last_error = error
    if readable is None:
        raise last_error
    return readable


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
