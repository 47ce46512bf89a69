# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a checkpoint as closely as the kubelet does: what Go accepts, in which order, and how it complains.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go, state_checkpoint.go) and encoding/json (decode.go).
"""

from __future__ import annotations

from typing import Any, Callable

from .._base.errors import GoError
from .._base.golang import Number, Object, folded, read_cpus, read_json
from ..cpuset import MAX_CPUS, CPUSet
from .formats import (
    CORRUPTED,
    FORMATS,
    MOST_BITS,
    STRUCT,
    TOO_MANY_BITS,
    Checkpoint,
    CheckpointError,
    ContainerIDs,
    Format1,
    Format2,
    Format3,
    Format4,
    era_of,
    migrated,
)


class _StoppedError(CheckpointError):
    """Go reads no further, and reports this even if something before was wrong, too."""


class _Reader1:
    """Reads the members of a JSON object into a checkpoint, which a kubelet calls `struct`."""

    def __init__(self, checkpoint: Any, struct: str) -> None:
        self.checkpoint = checkpoint
        self.struct = struct

    def fields(self) -> dict[str, Callable[[object, str], None]]:
        """Return what reads each member of the JSON object, by name."""
        return {
            "policyName": self._read_policy_name,
            "defaultCpuSet": self._read_default_cpu_set,
            "entries": self._read_entries,
            "checksum": self._read_checksum,
        }

    def read(self, data: object) -> None:
        """Take over a JSON document. Raises CheckpointError."""
        error = self._read(data)
        if error is not None:
            raise error

    def _read(self, data: object) -> CheckpointError | None:
        """Decode as Go, which reads on behind most of what has the wrong type, and reports the first."""
        if data is None:
            return None
        if not isinstance(data, Object):
            return _wrong_type(data, "Go value", "state." + self.struct)
        first_error = None
        by_key = {name.rpartition(".")[2].lower(): (name, reader) for name, reader in self.fields().items()}
        for key, value in data:
            name, reader = by_key.get(folded(key), ("", None))
            if reader is None:
                self._keep(key, value)
                continue
            try:
                reader(value, "Go struct field %s.%s" % (self.struct, name))
            except _StoppedError as error:
                return error
            except CheckpointError as error:
                first_error = first_error or error
        return first_error

    def _keep(self, key: str, value: object) -> None:
        """Ignore a member that is not known."""

    def _read_policy_name(self, value: object, where: str) -> None:
        self.checkpoint.policy_name = _text(value, self.checkpoint.policy_name, where)

    def _read_default_cpu_set(self, value: object, where: str) -> None:
        self.checkpoint.default_cpu_set = _text(value, self.checkpoint.default_cpu_set, where)

    def _read_checksum(self, value: object, where: str) -> None:
        self.checkpoint.checksum = _checksum(value, self.checkpoint.checksum, where)

    def _read_entries(self, value: object, where: str) -> None:
        self.checkpoint.entries = _mapping(value, self.checkpoint.entries, where, self.checkpoint.entries_type)
        _fill(self.checkpoint.entries, value, lambda text: _text(text, "", where))


class _Reader2(_Reader1):
    def _read_entries(self, value: object, where: str) -> None:
        def containers(inner: object) -> dict[str, str] | None:
            found = _mapping(inner, None, where, "map[string]string")
            _fill(found, inner, lambda text: _text(text, "", where))
            return found

        self.checkpoint.entries = _mapping(value, self.checkpoint.entries, where, self.checkpoint.entries_type)
        _fill(self.checkpoint.entries, value, containers)


class _Reader3(_Reader2):
    _pod_cpus = 0
    _pod_bits = 0

    def fields(self) -> dict[str, Callable[[object, str], None]]:
        """Return what reads each member of the JSON object, by name."""
        return {**super().fields(), "podEntries": self._read_pod_entries}

    def _read_pod_entries(self, value: object, where: str) -> None:
        self.checkpoint.pod_entries = _mapping(value, self.checkpoint.pod_entries, where, "state.PodCPUAssignments")
        _fill(self.checkpoint.pod_entries, value, lambda entry: self._pod_entry(entry, where))

    def _pod_entry(self, entry: object, where: str) -> CPUSet:
        text, error = "", None
        if entry is not None and not isinstance(entry, Object):
            raise _StoppedError(str(_wrong_type(entry, where, "state.podEntryJSON")))
        for key, value in entry or ():
            if folded(key) == "cpuset":
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
        self._pod_bits += cpus.mask.bit_length()
        if self._pod_bits > MOST_BITS:
            raise _StoppedError(TOO_MANY_BITS)
        return cpus


class _DataReader(_Reader3):
    """Of what is in the text of format 4, whose sum stands beside it."""

    def fields(self) -> dict[str, Callable[[object, str], None]]:
        """Return what reads each member of the JSON object, by name."""
        fields = super().fields()
        del fields["checksum"]
        return fields

    def _keep(self, key: str, value: object) -> None:
        self.checkpoint.others.append((key, value))


class _Reader4(_Reader1):
    def fields(self) -> dict[str, Callable[[object, str], None]]:
        """Return what reads each member of the JSON object, by name."""
        outer = _Reader2(self.checkpoint.outer, self.struct).fields()
        # Those of format 2 are, in Go, a struct in the struct.
        own = {"data": self._read_data, "dataChecksum": self._read_data_checksum}
        return {**{"%sV2.%s" % (STRUCT, name): reader for name, reader in outer.items()}, **own}

    def _read_data(self, value: object, where: str) -> None:
        self.checkpoint.data = _text(value, self.checkpoint.data, where)

    def _read_data_checksum(self, value: object, where: str) -> None:
        self.checkpoint.data_checksum = _checksum(value, self.checkpoint.data_checksum, where)

    def read(self, data: object) -> None:
        """Take over a JSON document: what counts is in its member data. Raises CheckpointError."""
        error = self.read_outer(data)
        if error is not None:
            raise CheckpointError("failed to deserialize cpu manager checkpoint: %s" % error)
        self.read_text()

    def read_outer(self, data: object) -> CheckpointError | None:
        """Take over the document but for what its member data says: what is wrong with it."""
        error = self._read(data)
        self.checkpoint.checksum = self.checkpoint.outer.checksum
        return error

    def read_text(self) -> None:
        """Take over what the member data says. Raises CheckpointError."""
        inner = Format4()
        try:
            _DataReader(inner, STRUCT + "Data").read(read_json(self.checkpoint.data.encode("utf-8")))
        except (GoError, CheckpointError) as failure:
            raise CheckpointError("failed to deserialize cpu manager checkpoint data: %s" % failure) from failure
        self.checkpoint.take_outer(inner)
        self.checkpoint.pod_entries, self.checkpoint.others = inner.pod_entries, inner.others


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
    era = era_of(minor)
    for version in era.pod_level_reads if pod_level else era.reads:
        kind = FORMATS[version - 1]
        checkpoint = kind()
        struct = STRUCT + ("" if version == era.newest else "V%d" % version)
        try:
            _reader(checkpoint, struct).read(data)
            if _sums_its_name(kind, pod_level):
                checkpoint.summed_as = struct
            checkpoint.verify()
        except CheckpointError as error:
            if isinstance(checkpoint, Format4) and (checkpoint.data or checkpoint.data_checksum):
                raise CheckpointError("could not load v4 checkpoint: %s" % error) from error
            last_error = error
            left_over = checkpoint if kind is Format3 and era.keeps_left_over else left_over
            continue
        try:
            return _with_left_over(migrated(checkpoint, container_ids), left_over)
        except CheckpointError as error:
            raise CheckpointError(era.migration_error % error) from error
    raise last_error


def _with_left_over(checkpoint: Checkpoint, left_over: Checkpoint | None) -> Checkpoint:
    """Return the kubelet 1.36 takes what it reads as format 2 over into what it could not accept as format 3.

    So the CPUs of whole pods survive in a format 3 without the right checksum that may be read as format 2.
    """
    if not isinstance(left_over, Format3) or not left_over.pod_entries:
        return checkpoint
    both = Format3()
    both.policy_name, both.default_cpu_set = checkpoint.policy_name, checkpoint.default_cpu_set
    both.entries, both.pod_entries = checkpoint.entries, left_over.pod_entries
    return both


def _sums_its_name(kind: type[Format1], pod_level: bool) -> bool:
    """Return whether a kubelet takes a sum with the format's own name for right, too."""
    return kind is Format3 or (kind is Format2 and not pod_level)


def decode(content: bytes) -> Checkpoint:
    """See decode_checkpoint()."""
    try:
        data = read_json(content)
    except GoError as error:
        raise CheckpointError(str(error)) from error
    members = {folded(key) for key, _value in data} if isinstance(data, Object) else set()
    # Without CPUs of whole pods, a format 3 is a format 2 with another sum; so is a format 1 without entries.
    kinds: tuple[type[Format1], ...] = (Format2, Format3, Format1)
    newest = _decode_4(data) if not members.isdisjoint({"data", "datachecksum"}) else None
    if newest is not None:
        return newest
    if "podentries" in members:
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


def _decode_4(data: object) -> Format4 | None:
    """Return what a format 4 says, as far as it can be believed; None for a file that no kubelet takes for one."""
    checkpoint = Format4()
    reader = _Reader4(checkpoint, checkpoint.struct)
    outer_error = reader.read_outer(data)
    if not checkpoint.data and not checkpoint.data_checksum:
        return None
    outer = checkpoint.outer
    try:
        reader.read_text()
    except CheckpointError:
        # The members of format 3 are those of format 2 and more.
        outer = Format3()
        _reader(outer, outer.struct).read(data)
        checkpoint.take_outer(outer)
        checkpoint.pod_entries = outer.pod_entries
        return checkpoint
    outer_is_right = outer_error is None and outer.checksum and outer.checksum == outer.right_checksum()
    if outer_is_right and not checkpoint.text_is_right:
        checkpoint.take_outer(outer)
    return checkpoint


# --- the types of Go -------------------------------------------------------------------------------

_LONGEST_SUM = len(str((1 << 64) - 1))


def _wrong_type(value: object, where: str, wanted: str, number: str = "number") -> CheckpointError:
    kinds = {Number: number, str: "string", bool: "bool", list: "array", Object: "object"}
    return CheckpointError("json: cannot unmarshal %s into %s of type %s" % (kinds[type(value)], where, wanted))


def _text(value: object, before: str, where: str) -> str:
    if value is None:
        return before
    if not isinstance(value, str) or isinstance(value, Number):
        raise _wrong_type(value, where, "string")
    return value


def _checksum(value: object, before: int, where: str) -> int:
    if value is None:
        return before
    if not isinstance(value, Number):
        raise _wrong_type(value, where, "checksum.Checksum")
    if not value.isdigit() or len(value) > _LONGEST_SUM or int(value) >= 1 << 64:
        raise _wrong_type(value, where, "checksum.Checksum", "number %s" % value)
    return int(value)


def _mapping(value: object, before: dict[str, Any] | None, where: str, wanted: str) -> dict[str, Any] | None:
    """Return what becomes of a map before the members of an object are added to it: null makes it nil."""
    if value is None:
        return None
    if not isinstance(value, Object):
        raise _wrong_type(value, where, wanted)
    return {} if before is None else before


def _fill(found: dict[str, Any] | None, members: Any, read: Callable[[object], object]) -> None:
    """Add the members to the map, up to the first that cannot be read."""
    if found is not None:
        for key, member in members:
            found[key] = read(member)
