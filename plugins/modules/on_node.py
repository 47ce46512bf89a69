#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: on_node
short_description: Run one of Ansible's own modules on a node, and take its answer as data
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Runs one module of C(ansible.builtin) with the arguments that it is given, and returns its result.
  - The answer sets no variables of the host, as facts, and makes no hosts and groups, whatever the node says. Control
    characters and escape sequences in it are shown as visible text.
  - The roles of this collection use it for all that they do on nodes with Ansible's own modules.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.of_another_module
options:
  command:
    description: The arguments of M(ansible.builtin.command).
    type: dict
  copy:
    description: The arguments of M(ansible.builtin.copy).
    type: dict
  file:
    description: The arguments of M(ansible.builtin.file).
    type: dict
  service:
    description: The arguments of M(ansible.builtin.service).
    type: dict
  stat:
    description: The arguments of M(ansible.builtin.stat).
    type: dict
  systemd_service:
    description: The arguments of M(ansible.builtin.systemd_service).
    type: dict
  wait_for:
    description: The arguments of M(ansible.builtin.wait_for).
    type: dict
notes:
  - Give exactly one of the options.
"""

EXAMPLES = r"""
- name: Look for the kubelet's configuration
  kubenode.cpu_manager.on_node:
    stat:
      path: /var/lib/kubelet/config.yaml
  register: found
"""

RETURN = r"""
name_of_a_value:
  description: What the module that is run returns, each value by its own name.
  returned: always
  type: raw
"""
