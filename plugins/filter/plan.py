# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a fleet's change. The filter is documented in the file of its name beside this one."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ..module_utils.fleet.plan import plan_text
from ..module_utils.fleet.report.answers import collect


def _plan_text(plans: Mapping[str, object], skip_no_kubelet: bool = False) -> str:
    return plan_text(collect(plans), skip_no_kubelet)


class FilterModule:
    """The filter of the plans of the role kubelet."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name and function."""
        return {"plan_text": _plan_text}
