# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which facts of a host would change what the controller does.

Ansible makes each fact a variable of the host, above the inventory (inject_facts_as_vars), and any module's answer may
have facts. So a node could name the kubeconfig with which its controller works.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..module_utils._base.errors import RefusedError
from .variables import INTERNAL, KNOWN

# What a program decides by.
KIND = "foreign_fact"

# No honest fact of others begins so.
_PREFIXES = ("cpu_manager_", "drift_report_", "housekeeping_", "isolation_benchmark_", "kubelet_", "proposal_")
# What the roles and playbooks read beside these, of their own, of kubespray, and of Ansible itself.
_READ = (
    "acting_root proposal"
    " saved_directory saved_fixed saved_here saved_left_here saved_left_there saved_name saved_node saved_there"
    " kube_cpu_reserved kube_memory_reserved kube_override_hostname system_cpu_reserved system_memory_reserved"
    " system_reserved"
    " dict group_names inventory_dir inventory_file inventory_hostname inventory_hostname_short lookup now omit q query"
    " range undef"
)
_NAMES = frozenset(_READ.split()) | KNOWN | INTERNAL

# A node may name thousands.
_MOST, _LONGEST = 5, 60


def is_ours(name: str) -> bool:
    """Whether the collection acts by a variable of this name."""
    return name.startswith(_PREFIXES) or name in _NAMES


def check_facts(variables: Mapping[str, Any]) -> None:
    """Refuse a host whose facts have a name by which the controller would act. Raises RefusedError.

    variables: those of a task. Of what facts there are, Ansible itself keeps account in them.
    """
    facts = variables.get("ansible_facts")
    names = sorted(filter(is_ours, map(str, facts))) if isinstance(facts, Mapping) else []
    if names:
        raise RefusedError(
            "facts of this host have names of variables by which the controller acts (%s), and a node has no say in"
            " these" % _listed(names),
            "this host" if "inventory_hostname" in names else str(variables.get("inventory_hostname")),
            "nothing was done: find out where they come from: of a play of your own that sets them with set_fact and"
            " cacheable: true, leave cacheable out, or put them into the inventory; otherwise the node may be in the"
            " hands of others; then remove this host from the fact cache",
            KIND,
        )


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(name[:_LONGEST] for name in names[:_MOST])
    return few if len(names) <= _MOST else "%s and %d more" % (few, len(names) - _MOST)
