# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers have exclusive CPUs, as the program that gives them out has written down. It only reads.

That is the kubelet, in its checkpoint; or the program of the role reconcile under the policies dynamic and isolated, in
a file of its own, where the kubelet does not have the policy static.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, NamedTuple

from ..cpuset import CPUSet, count_bits
from ..errors import PERMISSION, NodeError, RefusedError
from ..state.assignments import State
from ..state.config import STATIC
from ..state.verdict import ABSENT, readable
from .node import Node
from .places import PROMISE

if TYPE_CHECKING:
    from ..kubelet.file.configuration import Configuration

_POLICY = "cpuManagerPolicy"
_DAMAGED = "is damaged, so the exclusive CPUs are unknown"


class Recorded(NamedTuple):
    """What was written down.

    state: the shared pool and who has which CPUs; None where there is no such file, or it cannot be read. where: the
    file. problem: what is wrong with it, for those who cannot do without; `state` is what it says all the same.
    requests: {(pod UID, container): how many CPUs it requests}, of those that may have more. by_kubelet: whether the
    kubelet gives the CPUs out.
    """

    state: State | None
    where: str
    problem: RefusedError | None = None
    requests: Mapping[tuple[str, str], int] = {}
    by_kubelet: bool = True


def read_exclusive(node: Node, configuration: Configuration | None) -> Recorded:
    """The exclusive CPUs of a node's containers. configuration: what its kubelet runs with, where that is known.

    Raises NodeError where reading takes more rights.
    """
    if has_promise(node) and not where_static(node, configuration):
        return _promised(node)
    said, where = readable(node.checkpoint()), node.tree.path(node.checkpoint_path)
    problem = None
    if said.verdict != ABSENT and (said.state is None or not said.checksum_right):
        problem = RefusedError(_DAMAGED, where, "repair it first, with the module checkpoint")
    return Recorded(said.state, where, problem)


def has_promise(node: Node) -> bool:
    """Whether a program of ours has given CPUs out here; where not, the kubelet's configuration does not matter."""
    return node.tree.exists(PROMISE, follow=False)


def where_static(node: Node, configuration: Configuration | None) -> str:
    """The file by which the kubelet has the policy static; empty where none says so."""
    if configuration is not None and configuration.values.get(_POLICY) == STATIC:
        return configuration.origin((_POLICY,)) or configuration.source
    # A kubelet that has just been restarted with it writes this first.
    if readable(node.checkpoint()).policy_name == STATIC:
        return node.tree.path(node.checkpoint_path)
    return ""


def _promised(node: Node) -> Recorded:
    # Imported here: on most nodes the kubelet gives CPUs out.
    from .dynamic.promise import read_promise
    from .pod_names import hashed

    where = node.tree.path(PROMISE)
    try:
        promise, _content = read_promise(node.tree)
    except (NodeError, RefusedError) as error:
        if error.kind == PERMISSION:
            raise
        remedy = "remove it: the containers then get their first sets anew"
        return Recorded(None, where, RefusedError(_DAMAGED, where, remedy), by_kubelet=False)
    if promise is None:
        return Recorded(None, where, by_kubelet=False)
    assignments: dict[str, dict[str, CPUSet]] = {}
    requests = {}
    for (pod, given), held in promise.state.containers.items():
        name = hashed(given) if node.hides_names else given
        assignments.setdefault(pod, {})[name] = CPUSet.from_mask(held.cpus)
        requests[pod, name] = count_bits(held.admitted)
    return Recorded(State(CPUSet.from_mask(promise.state.shared), assignments), where, None, requests, False)
