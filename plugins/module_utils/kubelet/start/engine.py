# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would a kubelet start with what it is given? The one place that decides: files, flags, machine and version in, what
it refuses out.

A kubelet goes through its flags, its --config file, the drop-ins, the flags again, the validation, the making of its
managers, their states, and the node's cgroups. Until the validation nothing can be judged behind the first refusal.
After it, all is told that it would refuse, in its order.
Source: cmd/kubelet/app/server.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from .accepted import plainly_accepted
from .plain import are_plain, plain_file, plain_values

if TYPE_CHECKING:
    from .checked import Checked
    from .finding import Finding, Host, Unknown
    from .loading.file_state import DropIns, FileState


# The file that most kubelets have.
_USUAL = "/var/lib/kubelet/config.yaml"


class Given(NamedTuple):
    """What a kubelet is given: the words behind its program's name, and the files that these name."""

    arguments: Sequence[str]
    # None without --config, and without --config-dir.
    file: FileState | None
    drop_ins: DropIns | None
    path: str = ""
    config_dir: str = ""

    @property
    def is_alone(self) -> bool:
        """Whether the file is all that counts: there are no drop-ins, and the flags only name places."""
        return self.drop_ins is None and are_plain(self.arguments)


class Prediction(NamedTuple):
    """What a kubelet would do with it."""

    # In the kubelet's order, so the first that is fatal is what it says.
    findings: Sequence[Finding]
    # What it depends on, and cannot be seen.
    unknown: Sequence[Unknown] = ()
    # None where the kubelet does not get so far as to make its managers.
    checked: Checked | None = None
    # What it has decoded by then.
    values: Mapping[str, Any] = {}
    # Those of the findings that are of fields that it does not have.
    ignored: Sequence[Finding] = ()

    @property
    def refusal(self) -> Finding | None:
        """The first refusal; None where there is none."""
        return next((finding for finding in self.findings if finding.fatal), None)

    @property
    def starts(self) -> bool | None:
        """Whether it starts; None where that cannot be told."""
        if self.refusal is not None:
            return False
        return None if self.unknown else True


def predict_values(values: Mapping[str, Any], host: Host, path: str = _USUAL) -> Prediction:
    """What the kubelet would do with a file of this path that has these values, and nothing else."""
    prediction = predict_plain(values, host)
    if prediction is not None:
        return prediction
    # Imported here, as below: nearly all nodes have a plain file, and every import costs time on every node.
    from json import dumps

    from .whole import predict_fully

    # In the order in which the kubelet looks at the members of YAML.
    return predict_fully(Given((), dumps(values, sort_keys=True).encode("utf-8"), None, path), host)


def predict(given: Given, host: Host, only_refusals: bool = False) -> Prediction:
    """What the kubelet would do, its managers' states left out; these come between checked.before and checked.after.

    only_refusals: what does harm, and does not keep the kubelet from starting, need not be found.
    """
    prediction = None
    if isinstance(given.file, bytes) and given.is_alone:
        values = plain_file(given.file)
        prediction = None if values is None else predict_plain(values, host, only_refusals)
    if prediction is not None:
        return prediction
    from .whole import predict_fully

    return predict_fully(given, host)


def predict_plain(values: Mapping[str, Any], host: Host, only_refusals: bool = False) -> Prediction | None:
    """What the kubelet would do with a file of these values; None where it takes the whole way to tell."""
    decoded = plain_values(values, host.minor)
    if decoded is None or decoded.get("featureGates"):
        return None
    checked = plainly_accepted(decoded, host) if only_refusals else None
    if checked is None:
        from .whole import check_plain

        checked = check_plain(decoded, host)
    return Prediction(checked.findings, checked.unknown, checked, decoded)
