# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Has a kubelet started for good? It counts as started only when it lives on, since a kubelet that refuses dies late.

A kubelet reads its checkpoint some seconds after it has begun to answer on its health port, and after systemd calls
it started. Source: updateRuntimeUp in pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any, Callable, NamedTuple, Sequence

from .._base.command import run_command
from .._base.errors import NodeError, RefusedError
from .._kubelet.configuration import Configuration, reached_at
from .._kubelet.flag_files import find_words
from .._kubelet.healthz import complaint_of, healthz_url
from .._kubelet.installation import KubeletProcess, find_kubelet
from .._kubelet.redacted_words import said_redacted, secrets_in
from .._kubelet.settings import found_settings
from .._node.container_cpus import WRITTEN
from .._node.node import Node
from .._reconcile.reconcile import reconcile_pods
from ..state.acceptance import readable

_INTERVAL = 0.5
# Seconds for one answer at /healthz, and the least that remains for it at the end of the timeout.
_PATIENCE, _LEAST_PATIENCE = 5.0, 1.0
# Seconds between the kubelet's start and the first look at it.
_BEFORE = 10.0
_LINES = 15

# What a kubelet logs when it gives up.
_GIVING_UP = re.compile(
    "Failed to start ContainerManager|failed to run Kubelet|failed to (load|validate|merge) kubelet config"
    "|please drain (this )?node|command failed|[Ii]nvalid state"
)


class ProcessLife(NamedTuple):
    """One process from its start to its end: its id, and when it started, in the kernel's ticks."""

    pid: int
    started: str


class Health(NamedTuple):
    """What became of the kubelet."""

    # Empty when it has started for good.
    complaint: str
    life: ProcessLife | None
    # For how many seconds everything was well.
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return {"pid": None if self.life is None else self.life.pid, "seconds": round(self.seconds, 1)}


class HealthWatch:
    """Looks at a kubelet again and again, until it was well for `seconds` or `timeout` seconds are over."""

    def __init__(
        self,
        node: Node,
        seconds: float,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.node, self.seconds, self.timeout = node, seconds, timeout
        self.clock, self.sleep = clock, sleep
        self._begin = clock()

    def passed(self) -> float:
        """Return seconds since the watch began, and a little more: the kubelet was started before."""
        return self.clock() - self._begin + _BEFORE

    def conditions(self) -> dict[str, object]:
        """Return what it waits for, as plain data. Raises NodeError where there is no configuration to compare with."""
        configuration = self.node.needed_configuration()
        return {
            "seconds": self.seconds,
            "timeout": self.timeout,
            "healthz": healthz_urls(configuration),
            "checkpoint": self.node.tree.path(self.node.checkpoint_path),
            "cpu_manager_policy": found_settings(configuration)["cpu_manager_policy"],
        }

    def watch(self) -> Health:
        """Wait. Raises NodeError where there is no configuration to compare with."""
        configuration = self.node.needed_configuration()
        life: ProcessLife | None = None
        well_since: float | None = None
        while True:
            now = self.clock()
            found = find_life(self.node)
            if life is not None and found != life:
                return Health(_gone(life, found), found, 0.0)
            life = found
            left = max(_LEAST_PATIENCE, self._begin + self.timeout - now)
            complaint = self._complaint(configuration, life, min(left, _PATIENCE))
            well_since = None if complaint else now if well_since is None else well_since
            well = 0.0 if well_since is None else now - well_since
            # Last, as it reads the most: a kubelet sets the cpusets of its containers at its first reconcile.
            if well_since is not None and well >= self.seconds:
                complaint = containers_complaint(self.node)
                if not complaint:
                    return Health("", life, well)
            if now - self._begin >= self.timeout:
                return Health(complaint or _too_late(self.timeout, self.seconds), life, well)
            self.sleep(_INTERVAL)

    def _complaint(self, configuration: Configuration, life: ProcessLife | None, patience: float) -> str:
        if life is None:
            return "no kubelet runs"
        return healthz_complaint(configuration, patience) or checkpoint_complaint(self.node, configuration)


def watched(watch: HealthWatch, service: str, log_file: str = "") -> Health:
    """Wait until the kubelet is well. Raises NodeError, with its last words, where it is not.

    service, log_file: as last_words() has them.
    """
    answer = watch.watch()
    if answer.complaint:
        words = last_words(service, watch.passed(), log_file)
        complaint = [answer.complaint, *(["\n".join(words)] if words else [])]
        told = without_secrets(watch.node, ", and the kubelet's last words are: ".join(complaint))
        raise NodeError(told, kind="kubelet")
    return answer


def find_life(node: Node) -> ProcessLife | None:
    """Return the kubelet's process, told from a later one that got its id."""
    process: KubeletProcess | None = find_kubelet(node.tree)
    if process is None:
        return None
    try:
        status = node.tree.read_value("/proc/%d/stat" % process.pid) or ""
    except (NodeError, RefusedError):
        status = ""
    # The name, in parentheses, may hold anything; the start time is the 20th field behind it.
    fields = status.rpartition(")")[2].split()
    return ProcessLife(process.pid, fields[19] if len(fields) > 19 else "")


def _gone(life: ProcessLife, found: ProcessLife | None) -> str:
    now = "none runs" if found is None else "now it is process %d" % found.pid
    return "the kubelet did not stay: process %d ended, %s" % (life.pid, now)


def _too_late(timeout: float, seconds: float) -> str:
    return "the kubelet was not well for %g seconds on end within %g" % (seconds, timeout)


def healthz_complaint(configuration: Configuration, patience: float = _PATIENCE) -> str:
    """Return what is wrong with the answer at /healthz; empty where it is well, or switched off.

    patience: for how many seconds it is waited, for all addresses and the whole of their answers.
    """
    deadline = time.monotonic() + patience
    port, given = _healthz(configuration)
    if port == 0:
        return ""
    if given.startswith("["):
        # It puts an address of IPv6 into brackets itself.
        return "healthzBindAddress: the kubelet cannot listen at %r; write it without brackets" % given
    first = ""
    for address in _addresses(given):
        complaint = complaint_of(address, port, deadline)
        if not complaint:
            return ""
        first = first or complaint
    return first


def healthz_urls(configuration: Configuration) -> list[str]:
    """Return where a kubelet with this configuration may answer; none where it does not."""
    port, given = _healthz(configuration)
    return [healthz_url(address, port) for address in _addresses(given)] if port else []


def _healthz(configuration: Configuration) -> tuple[int, str]:
    """Return the port, and the address that is given; empty for none."""
    port, address = configuration.given(("healthzPort",)).value, configuration.given(("healthzBindAddress",)).value
    return int(port), str(address or "")


def _addresses(given: str) -> list[str]:
    # What k3s gives its kubelet nobody sees, and it depends on the node's own.
    return [reached_at(given)] if given else ["127.0.0.1", "::1"]


def checkpoint_complaint(node: Node, configuration: Configuration) -> str:
    """Return what is wrong with the checkpoint that the kubelet has taken over or written."""
    policy = found_settings(configuration)["cpu_manager_policy"]
    said = readable(node.checkpoint())
    place = node.tree.path(node.checkpoint_path)
    if said.policy_name is None:
        return "%s: the kubelet has not written its checkpoint" % place
    if said.policy_name != policy:
        return "%s: is of the policy %s, and the configuration says %s" % (place, said.policy_name, policy)
    return ""


def containers_complaint(node: Node) -> str:
    """Return which containers do not have the CPUs that the checkpoint gives them; empty where all have, or none
    run."""
    try:
        answer = reconcile_pods(node, None, act=False)
    except (NodeError, RefusedError) as error:
        return str(error)
    wrong = [
        "%s has CPUs %s instead of %s" % (row.container or row.cgroup, row.effective, row.wanted)
        for row in answer.rows
        if row.result == WRITTEN
    ]
    return "; ".join(wrong)


def last_words(service: str, seconds: float, log_file: str = "") -> list[str]:
    """Return the lines that a kubelet logged in the last `seconds`, those with which it gave up first of all.

    log_file: where it logs, if not to the journal of systemd. Nothing where neither can be read.
    """
    try:
        text = _tail(log_file) if log_file else _journal(service, seconds)
    except (NodeError, OSError):
        return []
    lines = [line for line in text.splitlines() if line.strip()]
    return _most_telling(lines)


def without_secrets(node: Node, text: str) -> str:
    """Return what the kubelet of a node says, without the secrets of its command line and configuration."""
    words: list[str] = []
    secrets: list[str] = []
    installation = node.installation
    with suppress(NodeError, RefusedError):
        configuration = node.configuration()
        secrets += () if configuration is None else secrets_in(configuration.values)
    with suppress(NodeError, RefusedError):
        if installation is not None:
            # Those that a module is given have no secrets any more, by which they could be found.
            own = installation.command_line if installation.pid is not None else ()
            words += [*own[1:], *find_words(node.tree, installation.distribution, own)]
    return said_redacted(text, words, secrets)


def _journal(service: str, seconds: float) -> str:
    since = "--since=@%d" % (time.time() - seconds)
    return run_command(["journalctl", "--unit=" + service, since, "--output=cat", "--no-pager", "--lines=300"])


def _tail(path: str) -> str:
    with open(path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - (1 << 16)))
        return file.read().decode("utf-8", "replace")


def _most_telling(lines: Sequence[str]) -> list[str]:
    telling = [line for line in lines if _GIVING_UP.search(line)]
    return list(telling[-_LINES:] or lines[-_LINES:])
