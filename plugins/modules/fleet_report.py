#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_report
short_description: Make the report of a fleet from the result files of its nodes
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads the files that M(kubenode.cpu_manager.node_report) wrote, any number of them, from runs of any parts of a
    fleet. If there are several results of one node, the newest one counts.
  - Writes the report in the forms that are chosen. All are made from the same data, and have the same outcome.
  - It runs on the controller. It reads no node, and writes the report in check mode, too.
  - A result file that is damaged, of another fleet, or of a newer schema is named in the report. So is one that differs
    from another one of the same node and moment, or that is dated more than five minutes in the future.
    The others are reported, and the outcome is not C(clean).
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.node.names
attributes:
  check_mode:
    support: none
    details:
      - The report is what the module is for, so it is written in check mode, too.
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - The same results give the same report, apart from the time at which it was made.
options:
  directory:
    description: Where the report goes.
    type: path
    required: true
  sources:
    description:
      - Where the result files are. Files, or directories with a directory C(nodes) anywhere below.
      - The default is O(directory).
    type: list
    elements: path
    default: []
  hosts:
    description:
      - The hosts that the report has to contain. A host without a result is C(missing); results of others are left out.
      - By default all hosts that have results.
    type: list
    elements: str
  max_age:
    description:
      - The age from which a result is too old, such as V(24h) or V(7d). Its node is C(stale).
      - By default no result is too old.
    type: str
    default: ''
  forms:
    description:
      - V(json) is C(drift.json), with the schema C(docs/schema/report-1.json) of this collection.
      - V(html) is C(drift.html), one file that loads nothing else.
      - V(junit) is C(drift.xml), with a suite for each node and a case for each check. Checks that were
        not measured on a node are skipped.
      - V(prometheus) is C(drift.prom), for the textfile collector of the node exporter.
      - V(csv) is C(containers.csv), a row for each container. It has the node, the CPUs, whether they are whole cores,
        NUMA nodes, L3 caches, how much it was throttled, and since when it runs. Containers of the shared pool, and the
        last two columns, take the look C(throttling). A cell that a program for tables would take for a formula begins
        with an apostrophe.
      - V(where) is the same, shown, of the pods of O(pod).
      - V(reservations) is shown. It says of each node whether its reserved CPUs and memory are enough for what its host
        used between the reports of O(history), all with the look C(throttling).
      - V(markdown) is C(drift.md), for a ticket or a pull request. With O(history) it has the earlier reports, too.
      - V(table) is shown, as plain text; so is V(lines), with one line for each node, or for nodes alike.
      - V(trend) is shown, too. It has the reports of O(history) and this one side by side, with a line for each check,
        and a grade for each report.
    type: list
    elements: str
    choices: [json, html, junit, prometheus, csv, markdown, table, lines, trend, reservations, where]
    default: [json, html, table]
  pod:
    description: The form V(where) shows the pods whose namespace and name contain this text. By default, it shows all.
    type: str
    default: ''
  title:
    description: The title of the report.
    type: str
    default: CPU drift report
  fleet:
    description:
      - A name of the fleet. Result files of another fleet are not used.
      - By default files of any fleet are, but not of two. After the first file that names its fleet, files of other
        fleets are not used.
    type: str
    default: ''
  baseline:
    description:
      - The C(drift.json) of an earlier report. Each finding is then marked as new or known, with the time at which
        it was first seen, and the report lists those that are gone.
    type: path
  history:
    description:
      - Earlier reports of the fleet for the forms V(trend), V(reservations) and V(markdown), for which alone they are
        read. Files as C(drift.json), or directories with such files anywhere below. The last 11 count, and all of them
        for V(reservations).
      - A directory may be without one, as on the first day.
    type: list
    elements: path
    default: []
  fail_on:
    description:
      - V(drift) makes the task fail if a node differs from the wanted settings, V(danger) only if a kubelet would not
        start or would refuse its checkpoint.
      - With both, the task also fails if a node could not be read, is missing or stale. It fails too if a result file
        was not used, or if there is no node at all. With V(unread) it fails for these reasons alone, and with V(never)
        for none.
      - The failure is that of the whole fleet. Ansible counts the failure of a task with C(run_once) at the first host
        of the play. That need not be one of the nodes that the message names.
    type: str
    choices: [danger, drift, unread, never]
    default: never
  validate_only:
    description:
      - Only check the options and the baseline, so that errors are found before the nodes are read.
    type: bool
    default: false
  discard:
    description:
      - Hosts whose results count only if they are not older than O(began), so that no earlier result counts for a node
        that could not be read in this run. No result is removed, as another run may report on it at the same time.
    type: list
    elements: str
    default: []
  began:
    description:
      - When the run began, such as V(2026-11-23T15:04:05Z). A task with O(validate_only) returns it.
    type: str
    default: ""
  look_at:
    description:
      - The option of M(kubenode.cpu_manager.node_report), which is only checked here.
    type: list
    elements: str
    choices: [isolation, throttling, housekeeping, cache, impact, trial]
    default: []
  look_seconds:
    description:
      - The option of M(kubenode.cpu_manager.node_report), which is only checked here.
    type: int
    default: 5
notes:
  - RV(summary.exit_status) is the exit status for programs. 0 means no drift, 1 that something could not be determined,
    2 drift, 3 danger. The worst of all nodes counts.
seealso:
  - module: kubenode.cpu_manager.node_report
"""

EXAMPLES = r"""
- name: Merge the reports of three controllers
  kubenode.cpu_manager.fleet_report:
    directory: /srv/reports/all
    sources: [/srv/reports/eu, /srv/reports/us, /srv/reports/ap]
    hosts: "{{ groups.workers }}"
    max_age: 24h
    forms: [json, html, junit]
    fail_on: danger
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
summary:
  description: The whole fleet in numbers.
  returned: unless O(validate_only)
  type: dict
  contains:
    nodes:
      description: How many nodes there are.
      type: int
      sample: 300
    states:
      description:
        - How many nodes have each state. C(clean), C(nothing wanted), C(no kubelet), C(drift), C(refused), C(failed),
          C(unreachable), C(missing) or C(stale).
      type: dict
      sample: {"drift": 12, "clean": 288}
    checks:
      description:
        - How many nodes have a finding of each check, the worst first, with how many are waived, and how many are new.
      type: list
      elements: dict
      sample: [{"check": "policy-differs", "severity": "warning", "nodes": 12, "waived": 1, "new": 3}]
    gone:
      description: How many findings of the baseline are gone. None without a baseline.
      type: int
      sample: 4
    outcome:
      description: C(clean), C(unknown), C(drift) or C(danger).
      type: str
      sample: drift
    exit_status:
      description: The exit status that stands for the outcome.
      type: int
      sample: 2
passed:
  description: Whether the fleet passes O(fail_on). The task has failed if it does not.
  returned: unless O(validate_only)
  type: bool
  sample: false
files:
  description: The files that were written, by form.
  returned: unless O(validate_only)
  type: dict
  sample: {"json": "/srv/reports/all/drift.json", "html": "/srv/reports/all/drift.html"}
began:
  description: The time of the task, in UTC, for O(began) of the task that makes the report.
  returned: if O(validate_only)
  type: str
  sample: "2026-11-23T15:04:05Z"
"""
