# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a node's or a fleet's change. Each filter is documented in the file of its name beside this one."""

from __future__ import annotations

from typing import Any, Callable, Collection, Mapping

from ansible.errors import AnsibleFilterError

from ..module_utils._base.errors import CPUManagerError
from ..plugin_utils.report.answers import collect
from ..plugin_utils.rollout.texts import change_summary, trial_text
from ..plugin_utils.rollout.verdict import refusal


def _change_summary(
    plans: Mapping[str, object],
    left: Collection[str],
    check_mode: bool = False,
    skip_no_kubelet: bool = False,
    asks_settings: bool = True,
) -> str:
    try:
        return change_summary(collect(plans), left, check_mode, skip_no_kubelet, asks_settings)
    except CPUManagerError as error:
        raise AnsibleFilterError(str(error)) from None


def _plan_refusal(plan: object, skip_no_kubelet: bool = False, done_so_far: str = "") -> str:
    if not isinstance(plan, Mapping):
        raise AnsibleFilterError("plan_refusal takes the result of rollout_info, not %r" % (plan,))
    return refusal(plan, skip_no_kubelet, done_so_far)


def _trial_summary(answers: object) -> str:
    if not isinstance(answers, Mapping):
        raise AnsibleFilterError("trial_summary takes the results of kubelet_trial by host, not %r" % (answers,))
    return trial_text(answers)


class FilterModule:
    """The filters of the plans of the role kubelet."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Their names and functions."""
        return {
            "change_summary": _change_summary,
            "plan_refusal": _plan_refusal,
            "trial_summary": _trial_summary,
        }
