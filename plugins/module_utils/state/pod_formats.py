# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checkpoint's formats 3 and 4, which also have the CPUs of whole pods.

Format 4 is from the threads and KEPs, and was not replayed against a 1.37 kubelet: its members, and that its text
counts, from the pull requests 139102 and 139087 and KEP-5526; the checksum of the text from the tests of pull request
137820, which sum such a text. Two other forms were proposed: the members of v3 with checksum 0 beside the text (139103,
closed), and the text alone with its checksum in `checksum` (137820, reverted). Both are read, neither is written.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go).
"""

from __future__ import annotations

from typing import Any

from ..cpuset import CPUSet
from ..golang import json_text
from .assignments import State
from .formats import CORRUPTED, CheckpointError, Format1, Format2, fnv, spew

_CPUSET = "{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[%s]}}"


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
        return " PodEntries:(state.PodCPUAssignments)%s" % spew(pods)

    def state(self) -> State:
        """The state with its sets parsed. Raises CheckpointError as the kubelet does."""
        return super().state()._replace(pod_assignments=self.pod_entries or {})

    def fill(self, policy_name: str, state: State) -> None:
        """Take over a state, in the order in which it is written."""
        super().fill(policy_name, state)
        self.pod_entries = dict(sorted(state.pod_assignments.items()))

    def members(self) -> dict[str, Any]:
        """What is written beside the checksum."""
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
        self.data = json_text(self.members())
        if self.others:
            from ..golang import write_json

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
