#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_journal
short_description: Read how far a change of a node's kubelet has come
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads the journal of a change of the node's kubelet, which M(kubenode.cpu_manager.kubelet_change) writes. It says
    how far the change has come, and has the files as they were, so that a change that fails or is interrupted can be
    undone byte for byte.
  - The journal is the file C(/var/lib/kubenode-cpu-manager/change.json), and C(last-change.json) beside it after the
    change is complete. Each is replaced atomically.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - V(read) changes nothing.
      - V(absent) forgets the change in progress, for an operator who has made the node as it should be.
    type: str
    choices: [read, absent]
    default: read
  run:
    description:
      - The name of a run. If the change in progress is not that of this run, the module fails. Without it, there is no
        such check.
    type: str
    default: ''
  source:
    description:
      - With V(read), which journal. V(open) is that of the change in progress, and V(last) that of the last complete
        change.
    type: str
    choices: [open, last]
    default: open
seealso:
  - module: kubenode.cpu_manager.kubelet_change
  - module: kubenode.cpu_manager.rollout_info
"""

EXAMPLES = r"""
- name: Read the journal of the last change
  kubenode.cpu_manager.rollout_journal:
    source: last
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
journal:
  description: The journal afterwards. None if there is none.
  returned: success
  type: dict
  contains:
    phase:
      description: C(draining), C(stopping), C(changing) or C(changed).
      type: str
      sample: changing
    files:
      description: The files that are saved in it.
      type: list
      elements: str
      sample: [/var/lib/kubelet/config.yaml, /var/lib/kubelet/cpu_manager_state]
    facts:
      description: What is remembered with the change, such as whether the node was cordoned before.
      type: dict
      sample: {"cordoned": false}
    run:
      description: The name of the run that makes the change.
      type: str
      sample: "2026-11-22T09:30:00.123456"
    drain_seconds:
      description:
        - With V(last) in O(source), how many seconds passed from the drain of the node until it was back. Not there for
          a change without a drain, one that was interrupted, and one of an older version.
      type: int
      sample: 240
    steps_back:
      description: What leads back from there, in this order.
      type: list
      elements: str
      sample: [stop_kubelet, restore_files, start_kubelet]
"""

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._rollout.journal_steps import JOURNALS, JournalStep, note


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    step = JournalStep(parameters["state"], parameters["run"], source=parameters["source"])
    noted = note(tree, step, check_mode)
    journal = noted.journal
    shown = None if journal is None else {**journal.to_dict(), "steps_back": journal.steps_back()}
    return Outcome({"journal": shown}, noted.changed)


def main() -> None:
    run(
        work,
        Arguments(
            {
                "state": {"type": "str", "choices": ["read", "absent"], "default": "read"},
                "run": {"type": "str", "default": ""},
                "source": {"type": "str", "choices": list(JOURNALS), "default": "open"},
            },
        ),
    )


if __name__ == "__main__":
    main()
