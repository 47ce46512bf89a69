# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts that a playbook of this collection is about, for the keyword hosts of its plays."""

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts
short_description: The hosts that a playbook of this collection is about
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Returns the hosts of C(cpu_manager_canaries) and C(cpu_manager_hosts), in this order, for the keyword C(hosts) of a
    play.
  - It fails before anything is read where one of them is mistyped, so that it matches no host, where C(--limit) leaves
    none of them, where C(--tags) and C(--skip-tags) leave no task of the whole run, or where C(cpu_manager_serial) or
    C(cpu_manager_max_fail_percentage) is no size of a batch or no percentage. Ansible itself would go on without the
    canaries, with all hosts at once, or would end successfully without a host.
  - A variable of this collection that is an empty text in C(--extra-vars), as each question of a survey that was left
    empty, counts as one that is not there.
options:
  changing:
    description:
      - The name of a registered variable. Only hosts whose result there changes something are returned.
      - Of M(kubenode.cpu_manager.rollout_info) these are the hosts with actions, or with a change that was interrupted.
      - A host whose facts have names of variables of this collection does not count.
    type: str
  planned:
    description:
      - Whether only the hosts are returned that change by what M(kubenode.cpu_manager.rollout_verdict) has found
        last, in the order that it has found.
      - With O(batches_of), whether V(auto) is what it has found. Otherwise, V(auto) is what the playbook does by
        default.
    type: bool
    default: false
  needs_cluster:
    description:
      - With O(planned), the hosts are returned only if this is whether one of them needs more than one call, as it has
        to be drained, or to be taken back from an interrupted change.
    type: bool
  refused:
    description:
      - Whether the hosts are returned that M(kubenode.cpu_manager.rollout_verdict) has found last to be refused. If the
        run may go on without these, one that is not refused is among them.
    type: bool
    default: false
  here:
    description: Whether this is a play of the controller alone, which reads no node. It returns C(localhost).
    type: bool
    default: false
  names:
    description: Whether the names of the hosts are returned, rather than a pattern for the keyword C(hosts).
    type: bool
    default: false
  batches_of:
    description:
      - The name of a playbook that changes nodes. Instead of hosts, this returns how many of them it changes at a time,
        which is C(cpu_manager_serial), or what it does by default.
    type: str
    choices: [rollout, rollback, repair]
"""

EXAMPLES = r"""
- name: Compare nodes with what is wanted
  hosts: "{{ query('kubenode.cpu_manager.hosts') }}"
  gather_facts: false
  tasks:
    - name: Compare
      kubenode.cpu_manager.drift_info:
        cpu_manager_policy: static
"""

RETURN = r"""
_raw:
  description:
    - One pattern of hosts, none where no host changes; with O(names) the names of the hosts, each once; with
      O(batches_of) the sizes of the batches.
  type: list
  elements: str
"""

from typing import Any, Mapping

from ansible import context
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ..module_utils._base.errors import InputError
from ..plugin_utils.empty_answers import forget_empty_answers
from ..plugin_utils.hosts_of_run import HostsOfRun, kept_order
from ..plugin_utils.run_tags import check_tags
from ..plugin_utils.scope import batches, changes, check_batches, in_order, one_pattern, pattern_of, scope_of


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible is untyped
    """The lookup."""

    def run(self, _terms: list[object], variables: Mapping[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return a pattern of hosts, their names, or sizes of batches."""
        variables = variables or {}
        self.set_options(var_options=variables, direct=kwargs)

        # These variables are still those from before.
        forget_empty_answers()
        if self.get_option("here"):
            return ["localhost"]

        def value(name: str, default: object) -> Any:
            found = self._templar.template(variables[name]) if name in variables else ""
            return default if isinstance(found, str) and not found else found

        planned, refused, cluster = map(self.get_option, ("planned", "refused", "needs_cluster"))
        found = kept_order() if planned or refused else {}
        playbook = self.get_option("batches_of")
        if playbook:
            return batches(playbook, value("cpu_manager_serial", None), found.get("batches", ()))
        # A check of the syntax has no inventory.
        if context.CLIARGS.get("syntax"):
            return ["all"]
        try:
            check_tags(context.CLIARGS)
            canaries = value("cpu_manager_canaries", [])
            check_batches(value("cpu_manager_serial", 1), value("cpu_manager_max_fail_percentage", 0), canaries)
            scope = scope_of(
                variables["groups"],
                value("cpu_manager_hosts", "all"),
                canaries,
                variables.get("ansible_limit") or "",
            )
        except InputError as error:
            raise AnsibleError(str(error)) from None
        result = self.get_option("changing")
        if refused:
            changing = [name for name in scope.names if name in found.get("refused", ())]
        elif planned:
            if cluster is not None and cluster != found.get("needs_cluster", False):
                return []
            chosen = frozenset(found.get("changing", ()))
            changing = in_order(filter(chosen.__contains__, scope.names), found.get("batches", ()))
        elif result:
            answers = HostsOfRun(variables).answers(scope.names, result)
            changing = [host for host, answer in answers.items() if changes(answer)]
        else:
            return scope.names if self.get_option("names") else one_pattern(scope.patterns)
        return one_pattern(map(pattern_of, changing))
