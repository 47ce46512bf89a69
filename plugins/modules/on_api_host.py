#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: on_api_host
short_description: Run a module of kubernetes.core, and take its answer as data
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Runs one module of C(kubernetes.core) with the arguments that it is given, and returns its result. The host that
    reaches the API server is the one that the task is delegated to.
  - A call that fails is repeated if it may succeed in a moment. That is so if no answer comes in time, if the
    connection is refused or breaks, or by the status of HTTP such as 429 or 503. What the API server refuses is not
    repeated, nor is a drain, as whether pods may be evicted is another question. C(failure.kind) of a call that fails
    is C(api_no_answer) or C(api_refused).
  - An object with C(generateName) in O(k8s) gets its name here. Otherwise a call that is repeated could make two.
  - That host may be a server of the cluster. Its answer sets no variables of the host, as facts, and makes no hosts and
    groups, whatever it says. Control characters and escape sequences in it are shown as visible text.
  - The roles and playbooks of this collection use it for all that they ask of a cluster and change in it.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.of_another_module
options:
  context:
    description: The context of the kubeconfig. By default its current one.
    type: str
  k8s:
    description: The arguments of C(kubernetes.core.k8s).
    type: dict
  k8s_drain:
    description: The arguments of C(kubernetes.core.k8s_drain).
    type: dict
  k8s_info:
    description: The arguments of C(kubernetes.core.k8s_info).
    type: dict
  kubeconfig:
    description: The kubeconfig, as the module that is run takes it. By default that of the user of the host.
    type: raw
  timeout:
    description:
      - For how many seconds to wait for an answer. A call is repeated until twice that is over.
      - A task that has the keyword C(timeout) with less keeps that.
    type: int
    default: 60
notes:
  - Give exactly one of the options that are named as a module.
"""

EXAMPLES = r"""
- name: Read the node from the cluster
  kubenode.cpu_manager.on_api_host:
    kubeconfig: /etc/kubernetes/admin.conf
    k8s_info:
      kind: Node
      name: worker-1
  delegate_to: localhost
  register: node
"""

RETURN = r"""
name_of_a_value:
  description: What the module that is run returns, each value by its own name.
  returned: always
  type: raw
"""
