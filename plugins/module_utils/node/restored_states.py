# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checkpoints that a kubelet restores beside its CPU and memory managers': what it refuses of this node's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterator

from ..kubelet.gates.enabled import Gates
from ..kubelet.installed.distributions import KUBELET_ROOT
from ..kubelet.start.finding import Finding, Unknown, harmful, refused
from ..state.restored import CLAIMS, DEVICES, TWO_SINCE, DamageError, Restored, is_as_written, restored_by
from .memory_state import stored_state
from .node import Node

if TYPE_CHECKING:
    from ..kubelet.start.prediction import Prediction

_CAUSE = "the file is damaged, as after a power cut, or a kubelet of another version wrote it"
_REMEDY = "drain the node, stop the kubelet and take the file out of the way before it starts again"


def restored_paths(node: Node) -> dict[str, Restored]:
    """{path: what is there} of the files that the kubelet of this node restores, whether they are there or not."""
    root = node.checkpoint_path.rpartition("/")[0]
    # The devices' directory does not go with --root-dir.
    return {
        "%s/%s" % (KUBELET_ROOT if file.name == DEVICES else root, file.name): file for file in restored_by(node.minor)
    }


def with_restored(node: Node, *predictions: Prediction) -> list[Prediction]:
    """The predictions, each with what its kubelet says of these files. Raises NodeError."""
    by_gates: dict[str, list[Finding | Unknown]] = {}
    answers = []
    for prediction in predictions:
        checked, gates = prediction.checked, prediction.values.get("featureGates")
        if checked is None:
            answers.append(prediction)
            continue
        if repr(gates) not in by_gates:
            enabled = Gates.of(prediction.values, node.minor).enabled
            by_gates[repr(gates)] = list(_found(node, enabled))
        found = by_gates[repr(gates)]
        before = [*checked.before, *(finding for finding in found if isinstance(finding, Finding))]
        checked = checked._replace(before=before)
        unknown = [*prediction.unknown, *(doubt for doubt in found if isinstance(doubt, Unknown))]
        answers.append(prediction._replace(findings=checked.findings, unknown=unknown, checked=checked))
    return answers


def _found(node: Node, enabled: Callable[[str], bool]) -> Iterator[Finding | Unknown]:
    """In the kubelet's order."""
    for path, file in restored_paths(node).items():
        is_read = not file.gate or enabled(file.gate)
        content = stored_state(node.tree, path) if is_read else None
        if content is None:
            continue
        try:
            if not _is_restored(content, file, node.minor):
                yield Unknown("whether the checksum in it is right is not known here", path)
        except DamageError as error:
            yield _finding_of(error, file, path, node.minor)


def _is_restored(content: bytes | Exception, file: Restored, minor: int) -> bool:
    """Whether that is certain. Raises DamageError where it is certain that it is not."""
    if isinstance(content, Exception):
        raise DamageError(str(content))
    if is_as_written(file, content, minor):
        return True
    # Imported here, as below: on nearly all nodes they are in order.
    from ..state.restored_formats import check_exactly

    return check_exactly(file, content, minor)


def _finding_of(error: DamageError, file: Restored, path: str, minor: int) -> Finding:
    if file.name == DEVICES:
        return harmful(
            "%s (%s): the kubelet forgets which devices running containers have, and can give them to others"
            % (_CAUSE, error),
            _REMEDY,
            path,
            "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date",
        )
    if file.name == CLAIMS and error.is_inside:
        return refused("GetEntries() on checkpoint: %s" % error, _CAUSE, _REMEDY, path)
    if file.name == CLAIMS:
        text = "GetOrCreate() on checkpoint state: failed to get checkpoint %s: %s" % (CLAIMS, error)
        return refused(text, _CAUSE, _REMEDY, path)
    from ..golang import quote

    is_new, cause = minor >= TWO_SINCE, str(error)
    if error.is_inside:
        cause = "failed to get pod resource %s: %s" % ("information" if is_new else "allocation info", cause)
    text = (
        "could not restore state from checkpoint: %s, please drain this node and delete pod %s checkpoint file %s"
        " before restarting Kubelet" % (cause, "resource information" if is_new else "allocation", quote(path))
    )
    return refused(text, _CAUSE, _REMEDY, path)._replace(context="panic: ")
