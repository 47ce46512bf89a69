# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps systemd from starting a kubelet at all."""

from __future__ import annotations

from typing import Iterable

from ..host.service import missing_files
from ..kubelet.start.finding import refused
from ..kubelet.start.prediction import Prediction
from ..tree import Tree


def with_unit(tree: Tree, service: str, predictions: Iterable[Prediction]) -> list[Prediction]:
    """The predictions, behind what systemd refuses of the service's unit."""
    found = [
        refused(
            "Failed to load environment files: No such file or directory",
            "systemd does not start the service: %s needs the EnvironmentFile %s, which is not there"
            % (file.path, file.value),
            "write the file, or put a - before its path if it need not be there",
            file.path,
        )._replace(context="%s.service: " % service)
        for file in missing_files(tree, service)
    ]
    if not found:
        return list(predictions)
    return [
        prediction._replace(
            findings=[*found, *prediction.findings],
            checked=prediction.checked and prediction.checked._replace(before=[*found, *prediction.checked.before]),
        )
        for prediction in predictions
    ]
