# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would a kubelet start with what it is given? The one place that decides: files, flags, machine and version in, what
it refuses out.

A kubelet goes through its flags, its --config file, the drop-ins, the flags again, the validation, the making of its
managers, their states, and the node's cgroups. Until the validation nothing can be judged behind the first refusal.
After it, all that it would refuse is reported, in its order.
Source: cmd/kubelet/app/server.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping

from .plain import plain_file, plain_values
from .prediction import Given, Prediction

if TYPE_CHECKING:
    from .finding import Host


# The file that most kubelets have.
_USUAL = "/var/lib/kubelet/config.yaml"


def predict_values(values: Mapping[str, object], host: Host, path: str = _USUAL) -> Prediction:
    """What the kubelet would do with a file of this path that has these values, and nothing else."""
    prediction = predict_plain(values, host)
    if prediction is not None:
        return prediction
    # Imported here, as below: nearly all nodes have a plain file, and every import costs time on every node.
    from json import dumps

    from .whole import predict_fully

    # In the order in which the kubelet looks at the members of YAML.
    return predict_fully(Given((), dumps(values, sort_keys=True).encode("utf-8"), None, path), host)


def predict(given: Given, host: Host) -> Prediction:
    """What the kubelet would do, its managers' states left out; these come between checked.before and checked.after."""
    prediction = None
    if isinstance(given.file, bytes) and given.is_alone:
        values = plain_file(given.file)
        prediction = None if values is None else predict_plain(values, host)
    if prediction is not None:
        return prediction
    from .whole import predict_fully

    return predict_fully(given, host)


def predict_plain(values: Mapping[str, object], host: Host) -> Prediction | None:
    """What the kubelet would do with a file of these values; None where it takes the whole way to decide."""
    decoded = plain_values(values, host.minor)
    if decoded is None or decoded.get("featureGates"):
        return None
    from .whole import check_plain

    checked = check_plain(decoded, host)
    return Prediction(checked.findings, checked.unknown, checked, decoded)
