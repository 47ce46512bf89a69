#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_config
short_description: Set the CPU settings in a kubelet's configuration file
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Sets the kubelet's CPU settings in its C(KubeletConfiguration) file, YAML or JSON, and leaves every other line
    as it is.
  - Before anything is written, checks that the kubelet would start on this machine with the result.
  - A setting that is not given stays as it is. A value that means what the file means already, C(10s) and
    C(10000ms), is no change.
  - The kubelet reads the file only when it starts, so restart it after a change. With a change of policy, or of the
    reservation, the checkpoint has to go first; the role P(kubenode.cpu_manager.kubelet#role) does all of it in
    order.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.attributes.change
options:
  backup:
    description:
      - Keep the old file beside the new one.
    type: bool
    default: true
seealso:
  - module: kubenode.cpu_manager.checkpoint
  - module: kubenode.cpu_manager.drift_info
"""

EXAMPLES = r"""
- name: Give Guaranteed pods whole cores, and reserve four CPUs on two NUMA nodes
  kubenode.cpu_manager.kubelet_config:
    cpu_manager_policy: static
    cpu_manager_policy_options:
      full-pcpus-only: "true"
    cpu_manager_reconcile_period: 5s
    reservation:
      count: 4
      strategy: spread
"""

RETURN = r"""
node:
  description: The name of the node, from C(/etc/hostname).
  returned: always
  type: str
  sample: worker-3
file:
  description: The configuration file.
  returned: success
  type: str
  sample: /var/lib/kubelet/config.yaml
settings:
  description: All CPU settings after the change, in the form that this module takes.
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "static"}
drift:
  description: What was different.
  returned: success
  type: list
  elements: dict
  contains:
    subject:
      description: The setting.
      type: str
      sample: cpu_manager_policy
    wanted:
      description: Its new value.
      type: raw
      sample: static
    found:
      description: Its old value, the kubelet's default where the file had none.
      type: raw
      sample: none
checkpoint:
  description: Whether the kubelet would start with the checkpoint that is there and these settings; see
    M(kubenode.cpu_manager.checkpoint).
  returned: success
  type: dict
  sample: {"verdict": "accepted"}
backup_file:
  description: Where the old file was kept.
  returned: when the file was changed and O(backup) is true
  type: str
  sample: /var/lib/kubelet/config.yaml.20261121T101500Z~
"""

from typing import Any, Mapping

from ..module_utils.ansible_module import (
    KUBELET,
    SETTINGS_ARGUMENTS,
    Outcome,
    node_of,
    run,
    wanted_settings,
)
from ..module_utils.files import replace_file
from ..module_utils.kubelet.settings import changes, complete, found_settings, manager_config
from ..module_utils.node.drift import describe_drift
from ..module_utils.state.verdict import judge
from ..module_utils.tree import Tree

MODE = 0o644


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    configuration = node.needed_configuration()
    found = found_settings(configuration)
    settings = complete(wanted_settings(node, parameters), found)
    config = manager_config(settings, configuration, node.machine())
    new = configuration.with_changes(changes(settings, found))
    changed = new.text != configuration.text
    result: dict[str, Any] = {
        "file": configuration.source,
        "settings": settings,
        "drift": describe_drift(settings, found),
        "checkpoint": judge(node.checkpoint(), config).to_dict(),
    }
    if changed and not check_mode:
        before, after = configuration.text.encode("utf-8"), new.text.encode("utf-8")
        backup_file = replace_file(configuration.source, after, MODE, before, parameters["backup"])
        if backup_file:
            result["backup_file"] = backup_file
    header = {"before_header": configuration.source, "after_header": configuration.source}
    return Outcome(result, changed, {**header, "before": configuration.text, "after": new.text})


def main() -> None:
    run(
        work,
        KUBELET,
        SETTINGS_ARGUMENTS,
        {"backup": {"type": "bool", "default": True}},
        mutually_exclusive=[("reserved_system_cpus", "reservation")],
    )


if __name__ == "__main__":
    main()
