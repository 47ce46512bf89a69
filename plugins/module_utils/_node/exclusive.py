# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers have exclusive CPUs, as the program that gives them out has written down, and that file.

That is the kubelet, in its checkpoint; or the program of the role reconcile under the policies dynamic and isolated,
in a file of its own, where the kubelet does not have the policy static.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from .._base.errors import MALFORMED, PERMISSION, InputError, NodeError, RefusedError
from .._base.files import replace_file
from .._base.journal_file import PROMISE, obeyed_content
from .._base.tree import Tree
from .._cgroup.hierarchy import Quota
from .._containers.crictl import hashed
from ..cpuset import CPUSet, count_bits
from ..state.acceptance import ABSENT, STATIC, readable
from ..state.assignments import State
from .node import Node

if TYPE_CHECKING:
    from .._kubelet.configuration import Configuration
    from ..policy.dynamic_state import DynamicState, Key


# What the program has promised, as a file: written before the kernel is touched, so that one that is killed comes back
# to it.
#
# It is in /run: with the machine, all containers begin anew.


_VERSION = 1
_MODE = 0o600


class Promise(NamedTuple):
    """The policy's state, and what it takes to come back to it.

    found: {container: the mask that the kernel had for it when this was written}, of those that had something to
    leave. Until the kernel has followed, that is theirs alone, too. quotas: {cgroup: its quota}, of those whose quota
    was lifted.
    """

    policy: str
    state: DynamicState
    found: Mapping[Key, int] = {}
    quotas: Mapping[str, Quota] = {}

    def content(self) -> bytes:
        """Return the file."""
        data = {
            "version": _VERSION,
            "policy": self.policy,
            "state": self.state.to_dict(),
            "found": [
                {"pod": pod, "container": name, "cpus": str(CPUSet.from_mask(mask))}
                for (pod, name), mask in self.found.items()
            ],
            "quotas": {path: list(quota) for path, quota in self.quotas.items()},
        }
        return (json.dumps(data, indent=1) + "\n").encode("utf-8")


def read_promise(tree: Tree) -> tuple[Promise | None, bytes | None]:
    """Return what was promised, and the bytes of the file; None where there is none.

    Raises RefusedError for a file that is damaged, or that others than root may write: by it, nothing may be moved.
    """
    content = obeyed_content(tree, PROMISE)
    if content is None:
        return None, None
    try:
        promise = parse_promise(content)
    except InputError as error:
        raise RefusedError(
            "is damaged (%s), and no cpuset was written" % error,
            where=tree.path(PROMISE),
            remedy="remove it: the containers then get their first sets anew. The quotas of containers that had grown"
            " are in it alone, so delete their pods: the kubelet sets those of new ones",
        ) from error
    return promise, content


def parse_promise(content: bytes) -> Promise:
    """Return what content() has made. Raises InputError for all else."""
    try:
        return _parsed(json.loads(content))
    except InputError:
        raise
    except MALFORMED as error:
        raise InputError(str(error)) from error


def write_promise(tree: Tree, promise: Promise, before: bytes | None) -> bytes:
    """Put it in place of `before`; what is in the file then. Raises NodeError, RefusedError."""
    content = promise.content()
    if content != before:
        replace_file(tree.path(PROMISE), content, _MODE, before, backup=False, keep_mode=False)
    return content


def forget_promise(tree: Tree) -> None:
    """Remove the file."""
    if tree.exists(PROMISE, follow=False):
        os.unlink(tree.path(PROMISE))


def _parsed(data: Any) -> Promise:
    # Imported here: on most nodes nothing is promised.
    from ..policy.dynamic_state import DynamicState

    if data["version"] != _VERSION:
        raise InputError("version %r is not known" % (data["version"],))
    found = {(str(row["pod"]), str(row["container"])): CPUSet.parse(row["cpus"]).mask for row in data["found"]}
    quotas = {str(path): _quota(*numbers) for path, numbers in data["quotas"].items()}
    return Promise(str(data["policy"]), DynamicState.from_dict(data["state"]), found, quotas)


def _quota(quota_us: Any, period_us: Any) -> Quota:
    for number in (quota_us, period_us):
        if isinstance(number, bool) or not isinstance(number, int) or number <= 0:
            raise InputError("%r is no quota" % (number,))
    return Quota(quota_us, period_us)


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
    """Return the exclusive CPUs of a node's containers. configuration: what its kubelet runs with, where that is known.

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
    """Return whether a program of ours has given CPUs out here; where not, the kubelet's configuration does not
    matter."""
    return node.tree.exists(PROMISE, follow=False)


def where_static(node: Node, configuration: Configuration | None) -> str:
    """Return the file by which the kubelet has the policy static; empty where none says so."""
    policy, origin = (None, None) if configuration is None else configuration.given((_POLICY,))
    if configuration is not None and policy == STATIC:
        return origin or configuration.source
    # A kubelet that has just been restarted with it writes this first.
    if readable(node.checkpoint()).policy_name == STATIC:
        return node.tree.path(node.checkpoint_path)
    return ""


def _promised(node: Node) -> Recorded:
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
