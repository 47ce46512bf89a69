# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet is given, and what is predicted of its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from .plain import are_plain

if TYPE_CHECKING:
    from .checked import Checked
    from .finding import Finding, Unknown
    from .loading.file_state import DropIns, FileState


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
        """Whether it starts; None where that cannot be determined."""
        if self.refusal is not None:
            return False
        return None if self.unknown else True


class Starts(NamedTuple):
    """What is predicted of a start: of the node as it is found, its managers' states aside, and with what is wanted."""

    found: Prediction
    planned: Prediction
