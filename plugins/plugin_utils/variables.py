# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What action plugins check of a host's variables."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ..module_utils.errors import InputError
from ..module_utils.fleet.variables import misspelled

# A host may have thousands.
_MOST = 10
_RENAME = "%(name)s is no variable of this collection, and %(meant)s is: rename it, or remove it"
_REMOVE = "%(name)s is no variable of this collection, whose names begin so: remove it, or give it another name"


def check_names(task_vars: Mapping[str, Any]) -> None:
    """Refuse a host that has a variable that is meant to be one of ours, and is none. Raises InputError."""
    wrong = misspelled(str(name) for name in task_vars)
    if wrong:
        said = "; ".join((_RENAME if found["meant"] else _REMOVE) % found for found in wrong[:_MOST])
        more = "; and %d more" % (len(wrong) - _MOST) if len(wrong) > _MOST else ""
        raise InputError("%s%s; nothing was changed" % (said, more), str(task_vars["inventory_hostname"]))


def options_of_variables(
    names: Mapping[str, str], task_vars: Mapping[str, Any], template: Callable[[dict[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """{option: the value of its variable}, of those that are defined and not omitted. names: {option: variable}.

    Only values that are templates are compiled: an expression for all options would be compiled for each host.
    """
    given = {option: task_vars[variable] for option, variable in names.items() if variable in task_vars}
    # Of ansible-core 2.18, in place of what is left out.
    omitted = task_vars.get("omit")
    return {option: value for option, value in template(given).items() if value != omitted}
