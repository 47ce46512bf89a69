# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run knows of its hosts, and has found out for all of them. Variables of other hosts are read here alone.

Ansible keeps the result that a task registers as a variable of the host. It hides a fact of the same name, but only of
a host for which the task was run; and it stays for all later plays of the same ansible-playbook. So a value of another
host counts where that host has no fact with a name of ours, and where fix_values, the first task of a run, has let it
into this run. What holds for all hosts is no variable: it is in Ansible's own directory of this process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterable, Mapping

from ansible import constants

from ..module_utils._base.errors import RefusedError
from .guarded_action import check_facts, failure_of
from .report.answers import mapping
from .report.results import put_file

# By which name the result of fix_values says of which run it is.
RUN = "run"


class HostsOfRun:
    """The hosts of a run, and what tasks have registered for each."""

    def __init__(self, variables: Mapping[str, Any], fixed: str = "") -> None:
        """Read the hosts of a run. variables: of a task or play. fixed: under which name the run has the result of
        fix_values, if it has one."""
        self._hostvars = variables["hostvars"]
        self._fixed = fixed
        # What tells it from others of the same process; None where there is none.
        self.run = mapping(variables.get(fixed)).get(RUN)

    def registered(self, host: str, names: Iterable[str]) -> dict[str, Any]:
        """Return {name: its value}, of those that this run has registered for a host. Raises RefusedError if it was
        refused.

        Ansible puts together all variables of a host each time that one is read: ask for all names at once.
        """
        variables = self._hostvars[host]
        check_facts(variables)
        if self._fixed:
            fixed = mapping(variables.get(self._fixed))
            if fixed.get("failed"):
                raise RefusedError(str(fixed.get("msg", "it was refused")))
            if self.run is None or fixed.get(RUN) != self.run:
                return {}
        return {name: variables.get(name) for name in names}

    def answers(self, hosts: Iterable[str], name: str, default: Any = None) -> dict[str, Any]:
        """Return {host: what this run has registered for it under a name}.

        default: what a host has instead for which that is nothing, or that was refused; None for an empty mapping,
        and a failed result that says why it was refused.
        """
        return {host: self._answer(host, name, default) for host in hosts}

    def _answer(self, host: str, name: str, default: Any) -> Any:
        try:
            found = self.registered(host, [name]).get(name)
        except RefusedError as error:
            found = failure_of(error) if default is None else None
        return found if found is not None else {} if default is None else default


def keep_order(found: Mapping[str, Any]) -> None:
    """Keep which hosts the run changes, and in which batches, until the next run or the end. Raises NodeError.

    found: `changing`, the names of hosts; `batches`, the names of those of each, where it has found such.
    """
    put_file(str(_place()), [json.dumps(found)])


def kept_order() -> dict[str, Any]:
    """Return what was kept last; nothing before that."""
    try:
        return dict(json.loads(_place().read_bytes()))
    except FileNotFoundError:
        return {}


def _place() -> Path:
    # Of this process, and for its user alone.
    return Path(constants.DEFAULT_LOCAL_TMP) / "kubenode-run.json"
