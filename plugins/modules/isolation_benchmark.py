#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: isolation_benchmark
short_description: Measure on a node what exclusive CPUs are worth there
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Runs workloads in cgroups that it makes as the kubelet makes those of pods, on the CPUs that the CPU manager would
    give, and on the shared pool. It does so several times in random order. It measures the run time, and the latencies
    of small units of work.
  - Three experiments. V(stand-alone) is a victim alone. V(aggressor) is the victim beside a process for each CPU of the
    node. V(co-located) are two workloads, one bound by computing and one by memory and caches, each as Guaranteed and
    as Burstable, in the four combinations.
  - Each experiment is run on shared CPUs, with exclusive CPUs, and on a machine with hardware threads also with
    exclusive whole cores.
  - Needs only Python on the node. Ends everything that it has started and removes its cgroups, even if it is killed.
    One benchmark runs on a node at a time.
  - A node with pods is refused, unless O(allow_pods). CPUs that a container has to itself when the benchmark begins are
    not measured, whether the kubelet or the role P(kubenode.cpu_manager.reconcile#role) gave them. A node is refused if
    the file that lists them is damaged.
  - The medians have distribution-free intervals between two order statistics, of at least 95 % where there are six
    runs or more.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.attributes
attributes:
  check_mode:
    support: full
    details:
      - Returns what it would run, and about how long that would take.
  diff_mode:
    support: N/A
    details:
      - Leaves no changes on the node.
  idempotent:
    support: N/A
    details:
      - It measures.
options:
  experiments:
    description:
      - What to run.
    type: list
    elements: str
    choices: [stand-alone, aggressor, co-located]
    default: [stand-alone, aggressor, co-located]
  cpus:
    description:
      - How many CPUs each workload requests. The victim, and each of two workloads, has as many processes.
    type: int
    default: 1
  reserved_system_cpus:
    description:
      - The reserved CPUs, as a list of the kernel, in place of those of the node's kubelet.
      - On a node where no kubelet has a reservation, the CPUs of the first core are taken for reserved.
    type: str
  runs:
    description:
      - How often each case is run, V(1) to V(1000).
    type: int
    default: 10
  seed:
    description:
      - The seed of the random order. By default any; RV(seed) has it.
    type: int
  unit_milliseconds:
    description:
      - How long a unit of work takes if nothing disturbs it. Its latency is measured.
    type: float
    default: 2
  units:
    description:
      - How many units a run has.
    type: int
    default: 500
  seconds:
    description:
      - The longest time that all runs may take. A benchmark that is expected to take longer is refused, and one that
        takes longer is ended.
    type: int
    default: 900
  allow_pods:
    description:
      - Whether to run beside the pods of the node. They take CPU time from what is measured, and it takes CPU time from
        them.
    type: bool
    default: false
  stress_ng:
    description:
      - Whether the aggressor is C(stress-ng), which has to be installed, in place of Python.
    type: bool
    default: false
  workloads:
    description:
      - Your own commands in place of a workload, for C(victim), C(aggressor), C(compute) or C(memory). They run as
        the user that the module runs as, mostly root.
      - Each is a mapping. C(command) is a list of words. C(time_pattern) is a regular expression whose one group is the
        run time in the output; without it, the wall clock counts. C(latency_pattern) is one that matches each latency
        in the output. C(unit) is the unit of these, C(s), C(ms), C(us) or C(ns), by default C(s).
      - A command that ends while its run goes on is started again, and not measured.
    type: dict
    default: {}
seealso:
  - module: kubenode.cpu_manager.isolation_benchmark_report
"""

EXAMPLES = r"""
- name: Measure what exclusive CPUs are worth on this node
  kubenode.cpu_manager.isolation_benchmark:
  register: benchmark

- name: Show what it showed
  ansible.builtin.debug:
    msg: "{{ benchmark.verdict | map(attribute='text') }}"

- name: The same with a program of your own as the victim
  kubenode.cpu_manager.isolation_benchmark:
    experiments: [stand-alone, aggressor]
    workloads:
      victim:
        command: [/usr/local/bin/encode, --benchmark]
        time_pattern: 'total: ([0-9.]+) ms'
        unit: ms
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
schema_version:
  description: The version of the data below. Its first number changes if programs that read the data have to change.
  returned: success
  type: str
  sample: "1.0"
machine:
  description: The machine on which it was measured, with its load before.
  returned: success
  type: dict
  sample: {"cpus": 48, "cores": 24, "kernel": "6.1.0-18-amd64", "virtual": false}
seed:
  description: The seed of the random order.
  returned: success
  type: int
  sample: 1234
expected_seconds:
  description: About how long all runs take.
  returned: success
  type: float
  sample: 160.5
settings:
  description: The settings of the runs, including the reserved CPUs and the shared pool.
  returned: success
  type: dict
  sample: {"runs": 10, "units": 500, "reserved": "0", "pool": "0-1"}
cases:
  description: What is run, with the containers of each case and their CPUs.
  returned: success
  type: list
  elements: dict
  sample: [{"experiment": "stand-alone", "placement": "exclusive", "containers": [{"workload": "victim", "cpus": "1"}]}]
left_out:
  description: The cases that this node has too few CPUs for.
  returned: success
  type: list
  elements: str
  sample: []
rows:
  description:
    - Each measured container of each run, with the case's place in RV(cases), its run, and the place of the run in the
      order. Times are in seconds; p50, p99 and longest are of the latencies, none for a command that shows none.
  returned: unless in check mode
  type: list
  elements: dict
  sample:
    - {case: 3, run: 0, place: 7, workload: victim, qos_class: Guaranteed, seconds: 1.02, p50: 0.00203, p99: 0.0023,
       longest: 0.0041}
summary:
  description:
    - For each measured container, and for run time, p50 and p99, the median with its interval in seconds. Also a box
      plot in multiples of the best run of its workload in its experiment.
  returned: unless in check mode
  type: list
  elements: dict
  sample:
    - {experiment: aggressor, placement: exclusive, p99: {median: 0.0023, low: 0.0022, high: 0.0025}}
verdict:
  description: Whether exclusive CPUs protect the victim, as far as the intervals show it.
  returned: unless in check mode
  type: list
  elements: dict
  contains:
    question:
      description: C(not worse than alone) or C(better than shared).
      type: str
      sample: better than shared
    answer:
      description: C(yes), C(no) or C(not shown).
      type: str
      sample: 'yes'
    text:
      description: The same for people, with the numbers.
      type: str
  sample: [{"question": "better than shared", "answer": "yes", "ratio": 2.9}]
notes:
  description: Information about the numbers.
  returned: success
  type: list
  elements: str
  sample: []
note_checks:
  description: Empty texts, as many as RV(notes).
  returned: success
  type: list
  elements: str
  sample: []
"""

from typing import Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._benchmark.benchmark_plan import EXPERIMENTS
from ..module_utils._benchmark.run import node_benchmark
from ..module_utils._node.module import KUBELET, node_of


def work(tree: Tree, parameters: Mapping[str, object], check_mode: bool) -> Outcome:
    return Outcome(node_benchmark(node_of(tree, parameters), parameters, check_mode))


def main() -> None:
    run(
        work,
        KUBELET,
        Arguments(
            {
                "experiments": {
                    "type": "list",
                    "elements": "str",
                    "choices": list(EXPERIMENTS),
                    "default": list(EXPERIMENTS),
                },
                "cpus": {"type": "int", "default": 1},
                "reserved_system_cpus": {"type": "str"},
                "runs": {"type": "int", "default": 10},
                "seed": {"type": "int"},
                "unit_milliseconds": {"type": "float", "default": 2},
                "units": {"type": "int", "default": 500},
                "seconds": {"type": "int", "default": 900},
                "allow_pods": {"type": "bool", "default": False},
                "stress_ng": {"type": "bool", "default": False},
                "workloads": {"type": "dict", "default": {}},
            }
        ),
    )


if __name__ == "__main__":
    main()
