# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes on a bad day: what is damaged, whether a change was interrupted, and whether the kubelet runs."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

import yaml

from .fleet import JOURNAL, LAST, Fleet
from .kubelet_node import CHECKPOINT, CONFIG, STARTED, KubeletNode

MACHINE = "1s4c2t"  # 8 CPUs; a core is n, n+4
# Before the last rollout, after it, and what the next one wants.
PERIOD, BEFORE, AFTER, NEXT = "cpuManagerReconcilePeriod", "500ms", "1s", "2s"
RESERVED = "0,4"
ROLLOUT_BEFORE = "2026-11-01T09:30:00"
STATIC_PODS = "/etc/kubernetes/manifests"
CONTAINER, CPUS = "database", "1,5"

# What becomes of the configuration. All but the first two cannot be read any more.
HEALTHY, ABSENT_CPUS, NO_YAML, MISSING, EMPTY, HALF = "healthy", "absent CPUs", "no YAML", "missing", "empty", "half"
DAMAGES = (ABSENT_CPUS, NO_YAML, MISSING, EMPTY, HALF)
# And of the machine: a CPU is offline, so that the kubelet refuses the checkpoint. Its kubelet has to be down.
OFFLINE = "CPU offline"

CLOSED, DRAINING, STOPPING, CHANGING = "closed", "draining", "stopping", "changing"


class Day(NamedTuple):
    """What is wrong with a node."""

    damage: str
    # How far the change had come that was interrupted; CLOSED where none was.
    phase: str = CLOSED
    runs: bool = True
    # Of the interrupted change.
    facts: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """For a host."""
        words = (self.damage, self.phase, "up" if self.runs else "down")
        return "-".join(words).lower().replace(" ", "-")

    @property
    def is_readable(self) -> bool:
        """Whether the configuration is, once what was interrupted is taken back."""
        return self.phase == CHANGING or self.damage in (HEALTHY, OFFLINE)


def damaged(content: bytes, damage: str) -> bytes | None:
    """Return the configuration after the damage; None where there is none."""
    return {
        HEALTHY: content,
        OFFLINE: content,
        ABSENT_CPUS: content.replace(b"reservedSystemCPUs: 0,4", b"reservedSystemCPUs: 0,99"),
        NO_YAML: content + b"\t: [}\n",
        MISSING: None,
        EMPTY: b"",
        HALF: content[: content.index(b"cpuManagerPolicy") + 9],
    }[damage]


def pod_manifest() -> str:
    """Return a static pod with exclusive CPUs."""
    amounts = {"cpu": "2", "memory": "1Mi"}
    container = {"name": CONTAINER, "image": CONTAINER, "resources": {"limits": amounts, "requests": amounts}}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": CONTAINER}, "spec": {"containers": [container]}}
    )


class BadNode:
    """A node that has had a rollout, has a pod with exclusive CPUs, and meets its day."""

    def __init__(self, directory: Path, day: Day) -> None:
        self.day = day
        values = {
            "cpuManagerPolicy": "static",
            "reservedSystemCPUs": RESERVED,
            "staticPodPath": STATIC_PODS,
            PERIOD: AFTER,
        }
        self.node = KubeletNode(directory, MACHINE, values)
        self.after = self.content() or b""
        self.before = self.after.replace(AFTER.encode(), BEFORE.encode())
        self.node.write("%s/%s.yaml" % (STATIC_PODS, CONTAINER), pod_manifest())

    def meet(self) -> None:
        """Start the kubelet, and let come what comes."""
        node, day = self.node, self.day
        node.start()
        node.wait_for(STARTED)
        self.save_last()
        checkpoint = node.read(CHECKPOINT)
        if not day.runs:
            node.stop()
        if day.damage == OFFLINE:
            node.become(MACHINE + "+offline7")
        if day.phase != CLOSED:
            files = {CONFIG: self.after, CHECKPOINT: checkpoint} if day.phase == CHANGING else {}
            self._journal(JOURNAL, day.phase, day.facts, files)
        content = damaged(self.after, day.damage)
        place = node.root / CONFIG[1:]
        if content is None:
            place.unlink()
        else:
            place.write_bytes(content)
        self.damaged = content

    def save_last(self) -> None:
        """Have the journal of the last change."""
        self._journal(LAST, CHANGING, {"rollout": ROLLOUT_BEFORE}, {CONFIG: self.before})

    def _journal(self, path: str, phase: str, facts: Mapping[str, Any], files: Mapping[str, bytes | None]) -> None:
        saved = {
            name: None
            if content is None
            else {"content": base64.b64encode(content).decode(), "mode": 0o644, "uid": 0, "gid": 0}
            for name, content in files.items()
        }
        journal = {"format": 1, "phase": phase, "facts": dict(facts), "run": "killed", "files": saved}
        self.node.write(path, json.dumps(journal))

    def content(self) -> bytes | None:
        """Return the configuration as it is."""
        return self.node.read(CONFIG)

    def state(self) -> tuple[bytes | None, ...]:
        """Return all that a refusal leaves as it is."""
        return tuple(self.node.read(path) for path in (CONFIG, CHECKPOINT, JOURNAL, LAST))

    def cpus(self) -> str | None:
        """Return the exclusive CPUs of the pod; None where it has none."""
        (containers,) = self.node.entries().values() or [{}]
        return containers.get(CONTAINER)

    def kept_cpus(self) -> str | None:
        """Return the exclusive CPUs of the pod after a kill.

        If the checkpoint was put aside by then, the journal alone has them.
        """
        journal = json.loads(self.node.read(JOURNAL) or b"{}")
        if self.node.is_active() or CHECKPOINT not in journal.get("written", {}) or self.node.read(CHECKPOINT):
            return self.cpus()
        checkpoint = json.loads(base64.b64decode(journal["files"][CHECKPOINT]["content"]))
        (containers,) = checkpoint["entries"].values()
        return str(containers[CONTAINER])

    def configuration_for(self, period: str) -> dict[str, Any]:
        """Return what the configuration says, once it is whole."""
        values: dict[str, Any] = yaml.safe_load(self.after)
        return {**values, PERIOD: period}

    def period(self) -> str | None:
        """Return BEFORE, AFTER or NEXT, of a configuration that is whole and has all else as it was; else None."""
        content = self.content()
        if content in (self.before, self.after):
            return BEFORE if content == self.before else AFTER
        try:
            values = yaml.safe_load(content or b"")
        except yaml.YAMLError:
            return None
        return NEXT if values == self.configuration_for(NEXT) else None

    def is_whole(self) -> bool:
        """Return whether the configuration is that of before, one that is saved, or the new one."""
        return self.content() == self.damaged or self.period() is not None

    def is_well(self, period: str) -> bool:
        """Return whether its kubelet runs with this, no change is under way, and the pod has its CPUs."""
        return self._facts() == (period, CPUS, True, None)

    def _facts(self) -> tuple[object, ...]:
        return self.period(), self.cpus(), self.node.is_active(), self.node.read(JOURNAL)

    def account(self) -> str:
        """Return what a failed test shows of it."""
        return "%s: %s %s\n%s" % (self.node.name, self.day, self._facts(), "\n".join(self.node.log()[-8:]))


def add_days(fleet: Fleet, days: Sequence[Day], prefix: str = "") -> dict[str, BadNode]:
    """Return a node for each, by its name."""
    made: dict[str, BadNode] = {}
    for number, day in enumerate(days):
        name = "%s%02d-%s" % (prefix, number, day.name)
        made[name] = BadNode(fleet.directory / name, day)
        fleet.nodes[name] = made[name].node
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(BadNode.meet, made.values()))
    return made
