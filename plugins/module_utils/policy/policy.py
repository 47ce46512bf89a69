# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a CPU manager policy is: another one is another file with a class like these.

A policy holds no state of the node but what it remembers in memory; State is handed to it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..cpuset import CPUSet
from ..workload.pods import Pod
from .hints import Hint
from .running_state import RunningState


class AllocationError(Exception):
    """The policy cannot give a container its CPUs; the message is the kubelet's."""

    # The reason that the pod is refused with.
    reason = "UnexpectedAdmissionError"


class SMTAlignmentError(AllocationError):
    """Not a whole number of cores, or not enough of them."""

    reason = "SMTAlignmentError"


class Summary(NamedTuple):
    """What a policy decided on at its start."""

    reserved: CPUSet = CPUSet()
    # All CPUs of the cores that have a reserved one.
    reserved_physical: CPUSet = CPUSet()
    # What can ever be given to containers for themselves.
    allocatable: CPUSet = CPUSet()


class Policy:
    """The interface. `affinity` is a mask of NUMA node ids, None for no preference."""

    name = ""
    summary = Summary()

    def start(self, state: RunningState) -> None:
        """Check a restored state and make a new one complete. Raises StateError where the kubelet would not start."""
        raise NotImplementedError

    def allocate(self, state: RunningState, pod: Pod, container: str, affinity: int | None) -> None:
        """Give a container its CPUs, if it is to have any. Raises AllocationError, and nothing has changed."""
        raise NotImplementedError

    def remove(self, state: RunningState, pod_uid: str, container: str) -> None:
        """Take a container's CPUs back."""
        raise NotImplementedError

    def hints(self, state: RunningState, pod: Pod, container: str) -> list[Hint] | None:
        """The NUMA nodes that could serve a container. None: no preference; empty: it cannot be served."""
        raise NotImplementedError

    def pod_hints(self, state: RunningState, pod: Pod) -> list[Hint] | None:
        """The same for a pod as a whole."""
        raise NotImplementedError
