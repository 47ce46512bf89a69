# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings that a module is asked for, a reservation planned for the machine included.

Their names are those in SETTINGS; one that was not asked for is left out.
"""

from __future__ import annotations

from typing import Any, Mapping

from .._base.arguments import Arguments
from .._kubelet.settings import SETTINGS, check_settings
from ..policy.options import texts_of_options
from .node import Node
from .reservation_request import WITH_MEMORY, planned_reservation

SETTINGS_ARGUMENTS = Arguments(
    {
        **{name: dict(setting.argument) for name, setting in SETTINGS.items()},
        "reservation": {"type": "dict", "options": WITH_MEMORY},
    },
    mutually_exclusive=[("reserved_system_cpus", "reservation")],
)


def wanted_settings(node: Node, parameters: Mapping[str, Any], needs_kubelet: bool = False) -> dict[str, Any]:
    """Return the settings that were asked for, a reservation planned for this machine included. Raises InputError.

    needs_kubelet: plan none for a machine without a kubelet, such as a bastion, which may be too small for it.
    """
    wanted = {name: parameters[name] for name in SETTINGS if parameters[name] is not None}
    for name, value in wanted.items():
        if SETTINGS[name].argument["type"] == "dict":
            wanted[name] = texts_of_options(value)
    check_settings(wanted)
    request = parameters["reservation"]
    if request is None or (node.installation is None and needs_kubelet):
        return wanted
    reserved = planned_reservation(node, request)
    if reserved is not None:
        wanted["reserved_system_cpus"] = str(reserved)
    if request.get("memory") and node.installation is not None:
        # Imported here: most nodes have no memory reserved, and it is much.
        from .reserved_memory import memory_settings

        wanted.update(memory_settings(node, wanted))
    return wanted
