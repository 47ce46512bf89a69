# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What action plugins check of a host's variables."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils.errors import InputError
from ..module_utils.fleet.variables import misspelled

_SAID = "%(name)s is no variable of this collection, and %(meant)s is: rename it, or remove it"


def misspelled_failure(task_vars: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a task where a host has a variable that is nearly one of ours; empty where it has none."""
    wrong = misspelled(str(name) for name in task_vars)
    if not wrong:
        return {}
    error = InputError("; ".join(_SAID % found for found in wrong) + "; nothing was changed")
    message = "%s: %s" % (task_vars["inventory_hostname"], error)
    return {"failed": True, "changed": False, "msg": message, "failure": error.to_dict()}
