# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager's checkpoint, the file cpu_manager_state, in the format v2 of Kubernetes 1.18 and later.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go, state_checkpoint.go) and pkg/kubelet/checkpointmanager.
"""

from __future__ import annotations

import json
from typing import Any, Mapping, NamedTuple

from ..cpuset import CPUSet
from ..errors import InputError
from .assignments import Assignments, State

FILE_NAME = "cpu_manager_state"
MODE = 0o600

CORRUPTED = "checkpoint is corrupted"

# The types in Go of the entries, which go into the checksum.
_ENTRIES = "map[string]map[string]string"
_ENTRIES_V1 = "map[string]string"


class CheckpointError(Exception):
    """The kubelet cannot restore its state from this file; the message is the cause it tells."""


class Checkpoint(NamedTuple):
    """What the file says, its sets still as text."""

    policy_name: str
    default_cpu_set: str
    entries: Mapping[str, Mapping[str, str]]
    checksum: int

    def state(self) -> State:
        """The state with its sets parsed. Raises CheckpointError as the kubelet does."""
        try:
            default = CPUSet.parse_plain(self.default_cpu_set)
        except InputError as error:
            raise CheckpointError('could not parse default cpu set "%s": %s' % (self.default_cpu_set, error)) from error
        assignments: dict[str, dict[str, CPUSet]] = {}
        for pod, containers in self.entries.items():
            assignments[pod] = {}
            for container, text in containers.items():
                try:
                    assignments[pod][container] = CPUSet.parse_plain(text)
                except InputError as error:
                    raise CheckpointError(
                        'could not parse cpuset "%s" for container "%s" in pod "%s": %s' % (text, container, pod, error)
                    ) from error
        return State(default, assignments)


def read_checkpoint(content: bytes) -> Checkpoint:
    """Read the bytes of a checkpoint and verify its checksum; one of 0 is accepted unverified, as in the kubelet.

    Raises CheckpointError.
    """
    checkpoint = decode_checkpoint(content)
    if checkpoint.checksum in (0, checksum(checkpoint)):
        return checkpoint
    # The kubelet still reads the format v1, which without entries differs in its sum alone.
    if not checkpoint.entries and checkpoint.checksum == checksum(checkpoint, _ENTRIES_V1):
        return checkpoint
    raise CheckpointError(CORRUPTED)


def decode_checkpoint(content: bytes) -> Checkpoint:
    """Read the bytes of a checkpoint whatever its checksum is, for instance to save what a damaged one still says."""
    try:
        data = json.loads(content.decode("utf-8"), parse_constant=int)  # NaN is no JSON, and no int
        json.dumps(data, ensure_ascii=False).encode("utf-8")  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise CheckpointError("is not JSON: %s" % error) from error
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise CheckpointError("is not a JSON object")
    # As Go's decoder: names in any case, unknown ones ignored, null as absent.
    fields = {str(name).lower(): value for name, value in data.items() if value is not None}
    entries = _typed(fields, "entries", dict, {})
    for pod, containers in entries.items():
        if not isinstance(containers, dict) or not all(isinstance(text, str) for text in containers.values()):
            raise CheckpointError("entries of pod %s are not texts by container: is this the format v1?" % pod)
    number = _typed(fields, "checksum", int, 0)
    if isinstance(number, bool) or not 0 <= number < 1 << 64:
        raise CheckpointError("checksum %s is not a number that fits" % number)
    return Checkpoint(_typed(fields, "policyname", str, ""), _typed(fields, "defaultcpuset", str, ""), entries, number)


def _typed(fields: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = fields.get(name, default)
    if not isinstance(value, kind):
        raise CheckpointError("%s is not a JSON %s" % (name, {dict: "object", str: "string", int: "number"}[kind]))
    return value


def write_checkpoint(policy_name: str, state: State) -> bytes:
    """The bytes that the kubelet writes for this state."""
    entries = {
        pod: {container: str(cpus) for container, cpus in sorted(containers.items())}
        for pod, containers in sorted(state.assignments.items())
    }
    checkpoint = Checkpoint(policy_name, str(state.default_cpu_set), entries, 0)
    data: dict[str, Any] = {"policyName": policy_name, "defaultCpuSet": checkpoint.default_cpu_set}
    if entries:
        data["entries"] = entries
    data["checksum"] = checksum(checkpoint)
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    # Go escapes these for the sake of browsers.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, "\\u%04x" % ord(character))
    return text.encode("utf-8")


def checksum(checkpoint: Checkpoint, entries_type: str = _ENTRIES) -> int:
    """The 32-bit FNV-1a sum over the text that Go's spew makes of the kubelet's struct, its checksum 0."""
    pods = " ".join(
        "%s:map[%s]" % (pod, " ".join("%s:%s" % item for item in _by_bytes(containers)))
        for pod, containers in _by_bytes(checkpoint.entries)
    )
    text = (
        "(*state.CPUManagerCheckpoint){PolicyName:(string)%s DefaultCPUSet:(string)%s"
        " Entries:(%s)map[%s] Checksum:(checksum.Checksum)0}"
        % (checkpoint.policy_name, checkpoint.default_cpu_set, entries_type, pods)
    )
    value = 0x811C9DC5
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _by_bytes(items: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(items.items(), key=lambda item: item[0].encode("utf-8"))


def assignments_text(assignments: Assignments) -> dict[str, dict[str, str]]:
    """Exclusive CPUs as plain data: {pod UID: {container: CPUs}}."""
    return {
        pod: {container: str(cpus) for container, cpus in sorted(containers.items())}
        for pod, containers in sorted(assignments.items())
    }
