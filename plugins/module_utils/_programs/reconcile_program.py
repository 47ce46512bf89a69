# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One reconcile pass as a program: settings from a JSON file, what was done to the journal, figures for Prometheus.

Where the caches of the node are divided, their groups follow the checkpoint, too.

The figures are a textfile of node_exporter's textfile collector.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Mapping, Sequence

from .._base.errors import MALFORMED, InputError, NodeError, RefusedError
from .._base.journal_file import obeyed_content
from .._base.secrets import text_redacted
from .._base.tree import Tree
from .._base.untrusted import FIGURES_MODE, write_file
from .._caches.cache_partition import caches_follow
from .._containers.crictl import find_crictl
from .._node.container_cpus import FAILED, KEPT, SKIPPED, WRITTEN, ContainerRow
from .._node.node import KUBELET_HIDDEN, Node
from .._published.publish import publish_node
from .._reconcile.reconcile import ReconcileResult, reconcile_pods
from ..state.acceptance import STATIC

METRICS = """\
# HELP kubenode_cpu_manager_reconcile_success Whether the last pass went through and no container's cpuset failed.
# TYPE kubenode_cpu_manager_reconcile_success gauge
kubenode_cpu_manager_reconcile_success {success}
# HELP kubenode_cpu_manager_reconcile_timestamp_seconds When the last pass ended.
# TYPE kubenode_cpu_manager_reconcile_timestamp_seconds gauge
kubenode_cpu_manager_reconcile_timestamp_seconds {timestamp:.3f}
# HELP kubenode_cpu_manager_reconcile_duration_seconds How long it took.
# TYPE kubenode_cpu_manager_reconcile_duration_seconds gauge
kubenode_cpu_manager_reconcile_duration_seconds {duration:.6f}
# HELP kubenode_cpu_manager_reconcile_checkpoint Whether there was a checkpoint to go by.
# TYPE kubenode_cpu_manager_reconcile_checkpoint gauge
kubenode_cpu_manager_reconcile_checkpoint {checkpoint}
# HELP kubenode_cpu_manager_reconcile_kubelet What is seen of the kubelet: it runs, it is stopped, or it may be hidden.
# TYPE kubenode_cpu_manager_reconcile_kubelet gauge
{kubelet}# HELP kubenode_cpu_manager_reconcile_containers The containers by what became of their cpusets.
# TYPE kubenode_cpu_manager_reconcile_containers gauge
"""
KUBELET = 'kubenode_cpu_manager_reconcile_kubelet{{state="{state}"}} {value}\n'
RUNNING, STOPPED, HIDDEN = "running", "stopped", "hidden"
CONTAINERS = 'kubenode_cpu_manager_reconcile_containers{{result="{result}"}} {count}\n'


def main(arguments: Sequence[str]) -> int:
    """Do one pass; 0 when every container has its CPUs, 1 when not, 2 when the settings cannot be read.

    With the policies dynamic and isolated, do one after the other.
    """
    try:
        content = obeyed_content(Tree("/"), os.path.abspath(arguments[0]))
        if content is None:
            raise InputError("there is no such file", arguments[0])
        settings = json.loads(content)
        tree = Tree(settings["root"])
    except (*MALFORMED, IndexError, NodeError, RefusedError) as error:
        _tell("usage: cpu-manager-reconcile SETTINGS.json: %s" % error)
        return 2
    if settings.get("policy", STATIC) != STATIC or arguments[1:]:
        # Imported here: with the policy static, it is the kubelet that gives CPUs out.
        from .._dynamic.program import run

        return run(tree, settings, arguments[1:])
    start = time.monotonic()
    answer, node, seen = ReconcileResult(), None, ""
    try:
        found = Node(tree, settings.get("config_path"), settings.get("kubelet_root"))
        found.check_seen()
        # All that follows goes by the files of its kubelet.
        node, seen = found, STOPPED if found.kubelet_pid is None else RUNNING
        answer = _one_pass(node, settings)
        success = not any(row.result == FAILED for row in answer.rows)
    except (InputError, NodeError, RefusedError, OSError) as error:
        _tell("error: %s" % error)
        success = False
        if isinstance(error, NodeError) and error.kind == KUBELET_HIDDEN:
            seen = HIDDEN
    for line in _lines(answer):
        _tell(line)
    # Also where somebody else gives the containers their CPUs: they are only read then.
    for line in [] if node is None else publish_node(node, answer.running, answer.rows, answer.new):
        _tell("note: " + line)
    if node is not None:
        success = caches_follow(node, settings.get("allow_owners") or (), _tell) and success
    if settings.get("textfile"):
        try:
            metrics = _metrics(answer, seen, success, time.monotonic() - start)
            write_file(settings["textfile"], metrics.encode("utf-8"), FIGURES_MODE)
        except (NodeError, RefusedError) as error:
            _tell("error: %s" % error)
            success = False
    return 0 if success else 1


def _tell(line: str) -> None:
    sys.stdout.write(text_redacted(line) + "\n")


def _one_pass(node: Node, settings: Mapping[str, Any]) -> ReconcileResult:
    endpoint = settings.get("runtime_endpoint") or node.runtime_endpoint(node.configuration())
    runtime = find_crictl(node.tree, endpoint) if settings.get("use_runtime", True) else None
    return reconcile_pods(node, runtime, True, settings.get("allow_owners") or ())


def _lines(answer: ReconcileResult) -> list[str]:
    """Return what is worth a line: what was written and what failed, not what is as it was at the last pass; and why
    nothing could be looked at, or through what nothing can be written.
    """
    lines = ["note: " + note for note in answer.notes]
    lines += ["widened: %s: %s to %s" % (write.path, write.old, write.new) for write in answer.widened]
    lines += [_line(row) for row in answer.rows if row.result in (WRITTEN, FAILED)]
    return lines


def _line(row: ContainerRow) -> str:
    who = "pod %s, container %s" % (row.pod or row.pod_uid, row.container or row.id)
    why = ": " + row.why if row.why else ""
    return "%s: %s: CPUs %s to %s%s" % (row.result, who, row.effective, row.wanted, why)


def _metrics(answer: ReconcileResult, seen: str, success: bool, duration: float) -> str:
    checkpoint = int(answer.old is not None)
    kubelet = "".join(KUBELET.format(state=name, value=int(name == seen)) for name in (RUNNING, STOPPED, HIDDEN))
    text = METRICS.format(
        success=int(success), timestamp=time.time(), duration=duration, checkpoint=checkpoint, kubelet=kubelet
    )
    results = [row.result for row in answer.rows]
    for result in (KEPT, WRITTEN, FAILED, SKIPPED):
        text += CONTAINERS.format(result=result, count=results.count(result))
    return text
