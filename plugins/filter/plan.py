# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a fleet's kubelets say of a start. Each filter is documented in the file of its name beside this one."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ansible.errors import AnsibleFilterError

from ..plugin_utils.rollout.texts import trial_text


def _trial_summary(answers: object) -> str:
    if not isinstance(answers, Mapping):
        raise AnsibleFilterError("trial_summary takes the results of kubelet_trial by host, not %r" % (answers,))
    return trial_text(answers)


class FilterModule:
    """The filters of the plans of the role kubelet."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return their names and functions."""
        return {
            "trial_summary": _trial_summary,
        }
