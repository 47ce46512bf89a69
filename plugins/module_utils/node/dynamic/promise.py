# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the program has promised, as a file: written before the kernel is touched, so that one that is killed comes back
to it.

It is in /run: with the machine, all containers begin anew.
"""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, NamedTuple

from ...cgroup.quota import Quota
from ...cpuset import CPUSet
from ...errors import MALFORMED, InputError, RefusedError
from ...files import replace_file
from ...policy.dynamic_state import DynamicState, Key
from ...tree import Tree
from ..places import PROMISE

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
        """The file."""
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
    """What was promised, and the bytes of the file; None where there is none.

    Raises RefusedError for a file that is damaged: by it, nothing may be moved.
    """
    content = tree.content(PROMISE)
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
    """What content() has made. Raises InputError for all else."""
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
