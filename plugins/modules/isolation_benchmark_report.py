#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: isolation_benchmark_report
short_description: Write the results of benchmarks as page, box plots, table and JSON
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Takes what M(kubenode.cpu_manager.isolation_benchmark) returned of any nodes, and writes it on the controller.
  - Computes medians, intervals, box plots and verdict again, from the single runs.
  - The page is one file that loads nothing. Its box plots are in multiples of the best run of a workload in its
    experiment, 1.00 is the best.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.controller
  - kubenode.cpu_manager.node.names
options:
  directory:
    description:
      - Where the files go, on the controller.
    type: path
    required: true
  results:
    description:
      - What M(kubenode.cpu_manager.isolation_benchmark) returned, by the name of the host.
    type: dict
    default: {}
  forms:
    description:
      - V(json) and V(html) are the files C(isolation.json) and C(isolation.html). V(table) is shown.
    type: list
    elements: str
    choices: [json, html, table]
    default: [json, html, table]
  title:
    description: The title of the page.
    type: str
    default: What exclusive CPUs are worth
  validate_only:
    description:
      - Only check the options, so that errors are found before anything runs.
    type: bool
    default: false
seealso:
  - module: kubenode.cpu_manager.isolation_benchmark
"""

EXAMPLES = r"""
- name: Write what was measured on two nodes
  kubenode.cpu_manager.isolation_benchmark_report:
    directory: /srv/benchmarks
    results:
      worker-1: "{{ hostvars['worker-1'].benchmark }}"
      worker-2: "{{ hostvars['worker-2'].benchmark }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
files:
  description: The files that were written.
  returned: unless O(validate_only)
  type: list
  elements: str
  sample: [/srv/benchmarks/isolation.json, /srv/benchmarks/isolation.html]
verdict:
  description: That of each node; see M(kubenode.cpu_manager.isolation_benchmark).
  returned: unless O(validate_only)
  type: dict
  sample: {"worker-1": [{"question": "better than shared", "answer": "yes"}]}
"""
