#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_save
short_description: Save what the modules read of a node in an archive
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Collects the files of a node that the modules of this collection read, and nothing else, in one small archive on the
    node, or on the controller. Every module takes the archive as O(root), and returns the same for it as for the node.
    So it can be used for bug reports, and to plan changes elsewhere. The playbook C(kubenode.cpu_manager.save) does it
    for a fleet.
  - "Of the machine: its CPUs, caches and NUMA nodes in sysfs, the NUMA nodes of network devices, some flags of the
    kernel, its load, C(/etc/hostname) and C(/etc/os-release). The archive also has what C(/proc/cpuinfo),
    C(/proc/meminfo), C(/proc/swaps) and C(/proc/mounts) say of CPUs, memory and cgroups."
  - "Of the kubelet: its configuration with drop-in files and kubeadm's patch, the files, units and environment files
    that give it flags, and the command line and the start of its process. The archive also has its checkpoint, the
    memory manager's state, how many devices containers have, and the journals of this collection."
  - "Of what runs: the cpusets of cgroups, one process id of each, the CPUs that the first process of each container may
    use, and the names of containers as those of their log files. What is in logs is not saved."
  - "Of the host: where services, interrupts and workqueues may run, what shows who manages CPUs, and NRI and CDI in the
    configuration of the container runtime. Of the boot loader, only the kernel's arguments about CPUs. Not what an
    owner of CPUs has left behind that is not active."
  - "Beside these files: the versions of the running kubelet and of the container runtime, and the size of the file
    system with the kubelet's directory. The archive also has what was strange about the processes that look like a
    kubelet."
  - The archive appears only when it is complete, and only its owner, mostly root, can read it. The same files give the
    same archive, except for the time that is saved in it.
  - Links are saved if they lead to a file on the node. Files that cannot be read, and links that lead out of a saved
    node, are left out and listed in RV(left_out).
  - "What may be secret is left out, and RV(redacted) lists the files. Of command lines, units, environment files and
    files with flags, the kubelet's own flags remain, without passwords, headers, and the users, passwords and queries
    of addresses. Of other flags, the names remain, with values that are paths of files and directories. Variables
    remain if a flag of the kubelet takes the value. A command line in quotes, as of C(sh -c), is looked into. Of k3s'
    and RKE2's configuration, C(kubelet-arg) remains. Of the container runtime's, NRI, CDI and what assigns CPUs remain,
    and of the kubelet's, the fields that there are, and comments of plain words. Of a file in its place that is none,
    or is damaged, C(x) and C(0) take the place of letters and digits. What a journal holds of these files is treated
    alike; of other files, nothing remains but TOML's keys about NRI and CDI. A file that cannot be told apart is left
    out."
  - Results for an archive may differ from those for the node in these points. Paths are shown as C(ARCHIVE:/path), and
    what was left out as C(redacted). It is not saved whether files can be written, and the container runtime and the
    kubelet's health are not read.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.attributes
options:
  dest:
    description:
      - The archive to write on the machine that the module runs on, an absolute path that ends in C(.tar.gz). Its
        directory must exist. An existing file is replaced, and a link is refused.
      - Give exactly one of O(dest) and O(local_dest).
    type: path
  local_dest:
    description:
      - The archive to write on the controller, an absolute path that ends in C(.tar.gz). Its directory is made where
        there is none, an existing file or link is replaced, and only its owner can read what is new. Nothing is written
        on the node, whose answer has the archive. One of more than 16 MiB is refused.
    type: path
  redact:
    description:
      - Whether the names of pods, namespaces and containers are replaced by the first 8 hexadecimal digits of their
        SHA-256, also in the checkpoint and the memory manager's state. Checksums stay right or wrong as they were.
      - Whoever guesses a name can verify the guess. Host names and the UIDs of pods stay. A damaged state, in which the
        names cannot be found, is left out.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    details:
      - Reads the node, and writes nothing.
  diff_mode:
    support: none
    details:
      - The archive is no text.
  idempotent:
    support: none
    details:
      - Each run saves the present state of the node.
seealso:
  - module: kubenode.cpu_manager.drift_info
  - module: kubenode.cpu_manager.rollout_info
"""

EXAMPLES = r"""
- name: Save the node
  kubenode.cpu_manager.node_save:
    dest: /root/worker-3.tar.gz
    redact: true

- name: Compare the saved node with other settings at the desk
  kubenode.cpu_manager.drift_info:
    root: "{{ playbook_dir }}/saved-nodes/worker-3.tar.gz"
    cpu_manager_policy: static
    reservation:
      count: 4
  delegate_to: localhost
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
dest:
  description: The archive.
  returned: success
  type: str
  sample: /root/worker-3.tar.gz
size:
  description: Its size in bytes.
  returned: success
  type: int
  sample: 18251
sha256:
  description: Its checksum.
  returned: success
  type: str
  sample: 2f0ea0d4a8aa2d1c5bf7d6e0c5a1e5f0a7a9f8a3c5d1c2b3a4958677f1e2d3c4
files:
  description: How many files, directories and links are in it.
  returned: success
  type: int
  sample: 1180
saved:
  description: When the node was saved, in UTC.
  returned: success
  type: str
  sample: "2026-11-23T15:04:05Z"
left_out:
  description: Files of the node that are not in the archive.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The path on the node.
      type: str
      sample: /sys/devices/system/node/node1/distance
    why:
      description: Why it was left out.
      type: str
      sample: Invalid argument
redacted:
  description: The files of which a part was left out, because it is secret or because no module reads it.
  returned: success
  type: list
  elements: str
  sample: [/proc/cpuinfo, /etc/default/kubelet]
"""

import base64
import hashlib
import os

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError, option
from ..module_utils._base.files import put_file
from ..module_utils._base.tree import Tree, node_name
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._saved.files_of_machine import save_node

MODE = 0o600
ENDING = ".tar.gz"


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    name = "dest" if parameters["local_dest"] is None else "local_dest"
    dest = parameters[name]
    if not os.path.isabs(dest) or not dest.endswith(ENDING):
        what = "%r is no absolute path of an archive" % dest
        raise InputError(what, option(name), "begin it with a / and end it in .tar.gz")
    content, about = save_node(node_of(tree, parameters), node_name(tree), parameters["redact"])
    shown = {key: about[key] for key in ("files", "saved", "left_out", "redacted")}
    if not check_mode and name == "dest":
        put_file(dest, content, MODE)
    elif not check_mode:
        # For the action plugin.
        shown["content"] = base64.b64encode(content).decode("ascii")
    checksum = hashlib.sha256(content).hexdigest()
    return Outcome({"dest": dest, "size": len(content), "sha256": checksum, **shown}, changed=True)


def main() -> None:
    run(
        work,
        KUBELET,
        Arguments(
            {"dest": {"type": "path"}, "local_dest": {"type": "path"}, "redact": {"type": "bool", "default": False}},
            mutually_exclusive=[("dest", "local_dest")],
            required_one_of=[("dest", "local_dest")],
        ),
    )


if __name__ == "__main__":
    main()
