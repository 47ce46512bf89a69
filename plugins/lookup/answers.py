# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task has registered for each host of a play."""

from __future__ import annotations

DOCUMENTATION = r"""
name: answers
short_description: What a task has registered for each host of a play
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Returns the results of all hosts of a play that a task has registered, in place of C(hostvars).
  - In C(hostvars), a fact of a host stands under the name of the result if the task was not run for that host. Here, a
    host whose facts have names of variables of this collection has a failed result instead, which says so.
options:
  _terms:
    description: The name of the variable in which a task has registered its result.
    type: list
    elements: str
    required: true
  hosts:
    description: The hosts; all of the play by default, also those that have failed or were lost.
    type: list
    elements: str
  fixed:
    description:
      - In which variable the first task of the run has registered the result of M(kubenode.cpu_manager.fix_values).
        Then a host counts only if it is in this run, and was not refused; what an earlier run of the same
        C(ansible-playbook) has registered does not count.
    type: str
    default: ''
  default:
    description:
      - What a host has for which nothing was registered, or that was refused. By default, an empty mapping, or the
        failed result that says why it was refused.
    type: raw
"""

EXAMPLES = r"""
- name: Show what all nodes differ in
  ansible.builtin.debug:
    msg: "{{ lookup('kubenode.cpu_manager.answers', 'compared') }}"
  run_once: true
"""

RETURN = r"""
_raw:
  description: For each name, a dictionary with the result of each host.
  type: list
  elements: dict
"""

from typing import Any, Mapping

from ansible.plugins.lookup import LookupBase

from ..plugin_utils.hosts_of_run import HostsOfRun


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible is untyped
    """The lookup."""

    def run(self, terms: list[str], variables: Mapping[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return {host: the result}, for each name."""
        variables = variables or {}
        self.set_options(var_options=variables, direct=kwargs)
        run, default = HostsOfRun(variables, self.get_option("fixed")), self.get_option("default")
        hosts = self.get_option("hosts")
        asked = variables["ansible_play_hosts_all"] if hosts is None else hosts
        return [run.answers(asked, name, default) for name in terms]
