# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a fleet's change. Each filter is documented in the file of its name beside this one."""

from __future__ import annotations

from typing import Any, Callable, Collection, Mapping

from ..plugin_utils.report.answers import collect
from ..plugin_utils.rollout.rollback import choose_rollout
from ..plugin_utils.rollout.texts import change_summary, plan_text


def _plan_text(plans: Mapping[str, object], skip_no_kubelet: bool = False) -> str:
    return plan_text(collect(plans), skip_no_kubelet)


def _change_summary(
    plans: Mapping[str, object], left: Collection[str], check_mode: bool = False, skip_no_kubelet: bool = False
) -> str:
    return change_summary(collect(plans), left, check_mode, skip_no_kubelet)


def _rollback_choice(plans: Mapping[str, Any], now: str, named: str = "") -> dict[str, str]:
    return choose_rollout({host: plan or {} for host, plan in plans.items()}, now, named).to_dict()


class FilterModule:
    """The filters of the plans of the role kubelet."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Their names and functions."""
        return {
            "change_summary": _change_summary,
            "plan_text": _plan_text,
            "rollback_choice": _rollback_choice,
        }
