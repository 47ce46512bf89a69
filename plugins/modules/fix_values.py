#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fix_values
short_description: Fix what the controller acts with, before a node answers
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Returns the values that it is given. Register the result, and let tasks on the controller use that alone. Registered
    variables have priority over facts, and Ansible makes facts of whatever a module's answer says on a node
    (C(inject_facts_as_vars)), with priority over the inventory.
  - Refuses a host whose facts, such as those of an earlier play or of a fact cache, have names of variables of this
    collection already. RV(ignore:failure.kind) is C(foreign_fact) then. All modules of this collection do.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.controller
options:
  values:
    description:
      - The values by their names. Each is a text, a number or a switch, and none is named C(changed), C(failed), C(msg)
        or C(run).
    type: dict
    required: true
  scope:
    description:
      - What the name of the play has to end with. The playbooks of this collection name their scope there, such as how
        many nodes are changed at a time. Ansible decides that without a host's own variables. So a host is refused that
        has other ones.
    type: str
    default: ''
  play:
    description: The name of the play.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Fix where results go
  kubenode.cpu_manager.fix_values:
    values:
      directory: /srv/results
  register: fixed
"""

RETURN = r"""
run:
  description: What tells this run from others of the same C(ansible-playbook). It is the same for all hosts.
  returned: success
  type: str
  sample: 525400a1-64fd-92d5-b64d-00000000000a
name_of_a_value:
  description: Each value, by its own name.
  returned: success
  type: raw
"""
