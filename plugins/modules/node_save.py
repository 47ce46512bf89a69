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
    node. Every module takes the archive as O(root), and says of it what it says of the node. So it is what a bug report
    or a plan at the desk needs. The playbook C(kubenode.cpu_manager.save) brings the archives of a fleet to the
    controller.
  - "Of the machine: its CPUs, caches and NUMA nodes in sysfs, the NUMA nodes of network devices, what
    C(/proc/cpuinfo), C(/proc/meminfo), C(/proc/swaps) and C(/proc/mounts) say of CPUs, memory and cgroups, some flags
    of the kernel, C(/etc/hostname) and C(/etc/os-release)."
  - "Of the kubelet: its configuration with drop-in files and kubeadm's patch, the files, units and environment files
    that give it flags, the command line and the start of its process, its checkpoint, the memory manager's state, and
    the journals of this collection."
  - "Of what runs: the cpusets of cgroups, one process id of each, the CPUs that the first process of each container may
    use, and the names of containers as those of their log files. What is in logs is not saved."
  - "Of the host: where services, interrupts and workqueues may run, what shows who manages CPUs, and NRI and CDI in the
    configuration of the container runtime; of the boot loader only the kernel's arguments about CPUs. Not what an owner
    of CPUs has left behind that is not active."
  - "Beside these files: the versions of the running kubelet and of the container runtime, the size of the file system
    with the kubelet's directory, and what was strange about the processes that look like a kubelet."
  - The archive appears at once when it is whole, and only its owner, mostly root, can read it. The same files give the
    same archive but for the time that is written down in it.
  - Links are saved where they lead to something on the node. What cannot be read, and what is a link out of a saved
    node, is left out and listed in RV(left_out).
  - "These secrets are left out, and RV(redacted) lists the files: of environment files and of C(Environment=) in units,
    all values but those that give flags or that the command line has; of k3s' and RKE2's configuration, all but
    C(kubelet-arg); in flags and command lines, the values of tokens, passwords, keys and headers, such as C(--token),
    C(--agent-token) and C(--manifest-url-header); the values in C(staticPodURLHeader); users and passwords in URLs,
    such as proxies; of a file in the place of a kubelet's configuration that is none, the values of tokens, passwords,
    keys and certificates. A file with secrets that cannot be told from the rest is left out."
  - These answers may differ from the node's. Paths are named as C(ARCHIVE:/path). Whether files can be written is not
    saved, and the container runtime and the kubelet's health are not asked.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.attributes
options:
  dest:
    description:
      - The archive to write on the machine that the module runs on, an absolute path that ends in C(.tar.gz). Its
        directory must exist. What is there is replaced.
    type: path
    required: true
  redact:
    description:
      - Whether the names of pods, namespaces and containers are replaced by the first 8 hexadecimal digits of their
        SHA-256, also in the checkpoint and the memory manager's state. Checksums stay right or wrong as they were.
      - Whoever can guess a name can verify it. Host names and the UIDs of pods stay. A state that is damaged, so that
        its names cannot be found, is left out.
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
      - Each run saves the node as it is then.
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
node:
  description: The name of the node, from C(/etc/hostname).
  returned: always
  type: str
  sample: worker-3
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
  description: What is there and is not in the archive.
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
  description: The files of which some was left out, as it is secret or as no module reads it.
  returned: success
  type: list
  elements: str
  sample: [/proc/cpuinfo, /etc/default/kubelet]
"""

import hashlib
import os
from typing import Any, Mapping

from ..module_utils.ansible_module import Arguments, Outcome, run
from ..module_utils.errors import InputError, RefusedError, option
from ..module_utils.files import replace_file
from ..module_utils.kubelet_module import KUBELET, node_of
from ..module_utils.node.saved_files import save_node
from ..module_utils.tree import Tree, node_name

MODE = 0o600
ENDING = ".tar.gz"


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    dest = parameters["dest"]
    if not os.path.isabs(dest) or not dest.endswith(ENDING):
        what = "%r is no absolute path of an archive" % dest
        raise InputError(what, option("dest"), "begin it with a / and end it in .tar.gz")
    content, about = save_node(node_of(tree, parameters), node_name(tree), parameters["redact"])
    if not check_mode:
        replace_file(dest, content, MODE, content_of(dest), backup=False, keep_mode=False)
    shown = {key: about[key] for key in ("files", "saved", "left_out", "redacted")}
    checksum = hashlib.sha256(content).hexdigest()
    return Outcome({"dest": dest, "size": len(content), "sha256": checksum, **shown}, changed=True)


def content_of(dest: str) -> bytes | None:
    """The file that will be replaced; None where there is none. Raises RefusedError for a link, OSError."""
    if os.path.islink(dest):
        raise RefusedError("is a link; nothing was written", where=dest, remedy="name another file")
    if not os.path.isfile(dest):
        return None
    with open(dest, "rb") as file:
        return file.read()


def main() -> None:
    run(
        work,
        KUBELET,
        Arguments({"dest": {"type": "path", "required": True}, "redact": {"type": "bool", "default": False}}),
    )


if __name__ == "__main__":
    main()
