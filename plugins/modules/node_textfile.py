#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_textfile
short_description: Write figures on a node for the textfile collector of its node exporter
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Replaces a file by a rename. What was there, such as a link or a FIFO, is neither read nor followed, as the
    directory often belongs to the user of the node exporter.
  - A link on the way to the directory is followed only where nobody but root can have put it.
  - M(kubenode.cpu_manager.node_report) calls this module for its O(kubenode.cpu_manager.node_report#module:textfile).
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - The file is always written, as what is there is not read.
options:
  path:
    description: The file. Its directory must exist; of a saved node without it, nothing is written.
    type: path
    required: true
  content:
    description: What is in it, in the text format of Prometheus.
    type: str
    required: true
seealso:
  - module: kubenode.cpu_manager.node_report
"""

EXAMPLES = r"""
- name: Write when the node was last changed
  kubenode.cpu_manager.node_textfile:
    path: /var/lib/node_exporter/last_change.prom
    content: "last_change_timestamp_seconds 1763971000\n"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
file:
  description: The file.
  returned: success
  type: str
  sample: /var/lib/node_exporter/last_change.prom
"""

import os

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._base.untrusted import FIGURES_MODE, write_file


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    place = tree.path(parameters["path"])
    if not tree.live and not os.path.isdir(os.path.dirname(place)):
        # What a saved node has no directory for, nobody collects.
        return Outcome({"file": place})
    if not check_mode:
        write_file(place, parameters["content"].encode("utf-8"), FIGURES_MODE)
    return Outcome({"file": place}, changed=True)


def main() -> None:
    run(
        work,
        Arguments({"path": {"type": "path", "required": True}, "content": {"type": "str", "required": True}}),
    )


if __name__ == "__main__":
    main()
