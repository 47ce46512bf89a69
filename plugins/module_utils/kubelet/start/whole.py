# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole way of a prediction: flags, files, drop-ins, and all that is checked of what they make together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..gates.enabled import Gates
from .checked import Checked
from .checks.configuration import check_decoded
from .finding import Finding, Host, Unknown, refused
from .prediction import Given, Prediction

if TYPE_CHECKING:
    from .loading.load import GateCheck, Ignored
    from .refusal import StartError


def check_plain(decoded: Mapping[str, object], host: Host) -> Checked:
    """What is found in the values of a plain file."""
    return check_decoded(decoded, Gates({}, host.minor), host, is_plain=True)


def predict_fully(given: Given, host: Host) -> Prediction:
    # Imported here: nearly all nodes have a plain file, and every import costs time on every node.
    from .flags.command import apply_flags, check_command, check_creation, check_run, read_command
    from .loading.load import load_configuration
    from .loading.members import UNKNOWN
    from .refusal import StartError, UnpredictableError

    minor = host.minor
    try:
        command = read_command(given.arguments, minor, host.is_assumed)
        check_command(command, minor, _gate_check(minor, "remove the gate from --feature-gates"))
        loaded = load_configuration(
            given.file,
            given.drop_ins,
            minor,
            _gate_check(minor, "remove it from featureGates"),
            given.path,
            given.config_dir,
            command.gates,
        )
        values = apply_flags(command, loaded.values)
    except StartError as refusal:
        return Prediction([_finding_of(refusal)])
    except UnpredictableError as error:
        return Prediction([], [Unknown(error.reason, error.where)])
    checked = check_decoded(
        values, Gates(values.get("featureGates") or {}, minor), host, _emptied(values, loaded.values)
    )
    before = list(checked.before)
    late = _refusal_by(lambda: check_run(command, minor))
    if late is not None:
        before.insert(_end_of_validation(before), _finding_of(late))
    late = _refusal_by(lambda: check_creation(command))
    if late is not None:
        before.append(_finding_of(late))
    odd = ignored_findings(loaded.ignored, minor)
    checked = checked._replace(before=[*odd, *before])
    ignored = [finding for finding, entry in zip(odd, loaded.ignored) if entry.member.problem == UNKNOWN]
    unknown = [*checked.unknown, *(Unknown(doubt.reason, doubt.where) for doubt in command.doubts)]
    return Prediction(checked.findings, unknown, checked, values, ignored)


def _gate_check(minor: int, removal: str) -> GateCheck:
    def refusal_of(gates: Mapping[str, bool]) -> Finding | None:
        if not gates:
            return None
        # Imported here: most nodes have no gates of their own.
        from .checks.gates import gate_refusal

        return gate_refusal(gates, minor, removal)

    return refusal_of


def _end_of_validation(findings: Sequence[Finding]) -> int:
    """The number of the findings until the kubelet begins to run."""
    from .checks.validation import CONTEXT

    return max((number for number, finding in enumerate(findings, 1) if finding.context == CONTEXT), default=0)


def _refusal_by(check: Callable[[], None]) -> StartError | None:
    from .refusal import StartError

    try:
        check()
    except StartError as refusal:
        return refusal
    return None


def _finding_of(refusal: StartError) -> Finding:
    finding = refused(refusal.text, refusal.cause, refusal.remedy, refusal.where)
    return finding._replace(context=refusal.context)


def _emptied(values: Mapping[str, Any], before: Mapping[str, Any]) -> frozenset[str]:
    """The fields that a flag gives an empty value; those of structs with a dot."""
    names = {name for name, value in values.items() if not value and before.get(name) != value}
    for name, struct in values.items():
        if isinstance(struct, dict) and struct != before.get(name):
            old = before.get(name) or {}
            names.update("%s.%s" % (name, key) for key, value in struct.items() if not value and old.get(key) != value)
    return frozenset(names)


def ignored_findings(ignored: Sequence[Ignored], minor: int) -> list[Finding]:
    """What of its files the kubelet 1.`minor` passes over."""
    if not ignored:
        return []
    # Imported here: nearly all files are in order.
    from .loading.ignored import finding_of

    return [finding_of(entry, minor) for entry in ignored]
