# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet says of a start, beside what is predicted of it, and what of that is a finding of a report."""

from __future__ import annotations

import os
import posixpath
from typing import Any, Mapping

from .._base.command import WOULD_EXECUTE
from .._base.errors import InputError, NodeError, Note, noted, option
from .._base.tree import LARGEST_OF_KUBELET, TO_ROOT, Tree, fault_of
from .._node.node import Node
from .._node.start_check import predict_start
from ..state.checkpoint import decode_checkpoint
from ..state.formats import CheckpointError
from .kubelet_trial import Trial, of_version, try_start, with_files
from .trial_plan import PATIENCE

# The checks of the drift report.
REFUSES, NEXT_REFUSES = "kubelet-refuses-start", "next-kubelet-refuses-start"
DIFFERS, UNMEASURED = "prediction-differs", "trial-unmeasured"
_OWN = "kubelet"
# Seconds.
LEAST_TIMEOUT, MOST_TIMEOUT = 5, 600


def trial_report(
    node: Node,
    wanted: Mapping[str, object],
    files: Mapping[str, object] | None = None,
    program: str | None = None,
    timeout: int = int(PATIENCE),
) -> dict[str, Any]:
    """Return what the kubelet of a node says of a start, as plain data; see the module kubelet_trial.

    wanted: settings, as a change would write them. files: {path: text, None for no file} that are planned beside.
    program: another kubelet. timeout: how many seconds the trial may take. Raises NodeError where there is no kubelet,
    InputError for files, a program or a time that cannot be, RefusedError for a program that others may write.
    """
    if not LEAST_TIMEOUT <= timeout <= MOST_TIMEOUT:
        remedy = "give %d to %d" % (LEAST_TIMEOUT, MOST_TIMEOUT)
        raise InputError("%d seconds are no time for a trial" % timeout, option("timeout"), remedy)
    contents = contents_of(files or {})
    if program is not None and node.tree.live:
        check_program(node.tree, program)
    trial = try_start(node, wanted, contents, program, is_planned=False, patience=timeout)
    planned = with_files(node, contents)
    prediction = predict_start(of_version(planned, trial.version), wanted)
    return {
        **answer_of(trial, program),
        "prediction": {
            "starts": prediction.starts,
            "findings": [finding.to_dict() for finding in prediction.findings],
            "unknown": [doubt.to_dict() for doubt in prediction.unknown],
        },
        "checkpoint_format": {
            "before": _format_of(_content(planned.tree, node.checkpoint_path)),
            "after": _format_of(trial.state),
        },
    }


def answer_of(trial: Trial, program: str | None) -> dict[str, Any]:
    """Return a trial as plain data, with what a report has of it. program: another kubelet than the node's own."""
    return {
        **trial.to_dict(),
        "program": program,
        "prediction_differs": trial.differs,
        "findings": _findings(trial, program),
        **noted([Note(UNMEASURED, trial.reason)] if trial.starts is None else []),
    }


def _findings(trial: Trial, program: str | None) -> list[dict[str, str]]:
    subject, kubelet = program or _OWN, "kubelet %s" % trial.version
    found = []
    if trial.starts is False:
        said = "%s does not start: %s" % (kubelet, trial.message or "it said nothing")
        found.append((NEXT_REFUSES if program else REFUSES, "starts", said))
    if trial.differs:
        predicted = "; ".join(text for _where, text in trial.mistaken)
        wanted = "predicted: " + ("a refusal: %s" % predicted if trial.starts else "a start")
        found.append((DIFFERS, wanted, "%s %s" % (kubelet, "starts" if trial.starts else "does not start")))
    rows = [{"check": check, "wanted": wanted, "found": text} for check, wanted, text in found]
    return [{**row, "subject": subject, "remedy": ""} for row in rows]


def contents_of(files: Mapping[str, object]) -> dict[str, bytes | None]:
    """Return the bytes of planned files. Raises InputError for one that no kubelet has."""
    contents: dict[str, bytes | None] = {}
    for path, text in files.items():
        if not posixpath.isabs(path) or posixpath.normpath(path) != path or path == "/":
            raise InputError("%r is no plain absolute path" % path, option("files"), "write it from / on, without ..")
        if text is not None and not isinstance(text, str):
            raise InputError("the content of %s is no text" % path, option("files"), "write it in quotes")
        contents[path] = None if text is None else text.encode("utf-8", "surrogateescape")
        if len(contents[path] or b"") > LARGEST_OF_KUBELET:
            raise InputError("%s has more than %d bytes" % (path, LARGEST_OF_KUBELET), option("files"))
    return contents


def check_program(tree: Tree, program: str) -> None:
    """Raise InputError for what is no program, RefusedError where others than root could have put it there."""
    if not (posixpath.isabs(program) and os.path.isfile(program) and os.access(program, os.X_OK)):
        raise InputError("%s is no program on this node" % program, option("program"), "name the path of a kubelet")
    fault = fault_of(tree, program)
    if fault is not None:
        remedy = "nothing was started: look at what is there, and give it to root (%s)" % TO_ROOT
        raise fault.refusal(WOULD_EXECUTE, remedy)


def _content(tree: Tree, path: str) -> bytes | None:
    try:
        return tree.content(path, LARGEST_OF_KUBELET)
    except NodeError:
        return None


def _format_of(content: bytes | None) -> int | None:
    """Return the format of a checkpoint; None where there is none, and where it is damaged."""
    try:
        return None if content is None else decode_checkpoint(content).version
    except CheckpointError:
        return None
