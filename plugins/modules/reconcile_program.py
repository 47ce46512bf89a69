#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reconcile_program
short_description: Install the reconcile pass as one file
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Writes the code of M(kubenode.cpu_manager.reconcile) to the node as one zipapp file, which Python runs without
    Ansible and without any other package. The role P(kubenode.cpu_manager.reconcile#role) runs it from a timer.
  - The program reads its settings from a JSON file, C(root), C(config_path), C(kubelet_root), C(use_runtime),
    C(runtime_endpoint), C(allow_owners), C(textfile) and C(policy); with the policies dynamic and isolated also
    C(period), C(settle), C(delay), C(shared_minimum), C(reserved_cpus) and C(policy_options). The name of that file is
    its first argument.
  - With the policies dynamic and isolated it runs until it is ended. With C(once) as the second argument it makes one
    pass. With C(release), under every policy, it gives back what it has given out, and removes what it has published.
  - Nothing is written if another program writes the cpusets of containers, such as the DRA CPU driver or an NRI policy,
    unless O(allow_owners) names it. With the policies dynamic and isolated, nothing is written either if the kubelet
    has the static policy.
  - Root executes it, so it belongs to root with the mode 0755, and anything else is a change. Nothing is written if
    others than root can write a directory above it, or the Python, or a directory above that or of its own modules.
    Nor is it removed then, as the role runs it before that, to give back what it has given out.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.attributes.change
options:
  path:
    description:
      - The path of the file. Its directory is made.
    type: path
    default: /usr/local/lib/kubenode/cpu-manager-reconcile.pyz
  interpreter:
    description:
      - The Python on the node that runs it, an absolute path. By default the one that Ansible uses there.
    type: path
  hidden:
    description:
      - Directories that are hidden from the service which runs it, such as V(/home) with C(ProtectHome) of systemd. If
        Python, the program or one of O(needed) is below one of them, nothing is written.
    type: list
    elements: path
    default: []
  needed:
    description:
      - Other files that the service needs, such as that of its settings.
    type: list
    elements: path
    default: []
  obeyed:
    description:
      - Other files, and directories, that root goes by and that are written after the program, such as its units.
        Nothing is written if others than root can write a directory above them.
    type: list
    elements: path
    default: []
  config_path:
    description:
      - The kubelet's configuration file, if it is not where it usually is.
    type: path
  kubelet_root:
    description:
      - The kubelet's root directory, if it is not where it usually is.
    type: path
  allow_owners:
    description:
      - The owners that may manage CPUs on the node beside this program, by their ids, such as V(crio-shared-cpus),
        which R(One owner for every CPU, ansible_collections.kubenode.cpu_manager.docsite.owners) lists.
    type: list
    elements: str
    default: []
  settings:
    description:
      - The settings that the file will be given. Where they are wrong, nothing is written.
      - With the policies dynamic and isolated they are wrong, too, if they cannot be kept on this node. With dynamic,
        some CPU has to be reserved, in C(reserved_cpus) or in the kubelet's C(reservedSystemCPUs), or
        C(shared_minimum) has to be at least 1. With isolated, the kernel has to isolate some CPUs, and none of the
        reserved ones. Reserved CPUs have to be online.
      - On a node without a kubelet, that is not checked.
    type: dict
    default: {}
  state:
    description:
      - Whether the file should exist.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: kubenode.cpu_manager.reconcile
"""

EXAMPLES = r"""
- name: Install the reconcile pass
  kubenode.cpu_manager.reconcile_program:
    path: /opt/cpu-manager/reconcile.pyz
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
file:
  description: The program.
  returned: success
  type: str
  sample: /usr/local/lib/kubenode/cpu-manager-reconcile.pyz
sha256:
  description: The checksum of the wanted program; empty with O(state=absent).
  returned: success
  type: str
  sample: 4d967a30111bf29f0eba01c448b375c1629b2fed01cdfcc3aed91f1b57d5dd5e
owner:
  description: The user to whom it, its units and its settings are to belong, which is root if root writes them.
  returned: success
  type: int
  sample: 0
group:
  description: The group, as RV(owner).
  returned: success
  type: int
  sample: 0
interpreter:
  description: The Python that runs it.
  returned: success
  type: str
  sample: /usr/bin/python3
flags:
  description: How it is called, so that it takes nothing from its surroundings.
  returned: success
  type: str
  sample: "-I -S"
sandbox:
  description: The lines of a unit of systemd that take from the program what it does not need.
  returned: success
  type: str
  sample: |
    NoNewPrivileges=yes
    ProtectSystem=strict
"""

import hashlib
import os
import stat
import sys
from typing import Any, Mapping, Sequence

from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.command import WOULD_EXECUTE
from ..module_utils._base.files import make_directory, remove_file, replace_file
from ..module_utils._base.tree import TO_ROOT, Tree, fault_of, own_ids
from ..module_utils._base.zipapp import build
from ..module_utils._dynamic.dynamic_settings import read_settings
from ..module_utils._dynamic.program import check_node
from ..module_utils._host.only_root import PYTHON_FLAGS, SANDBOX, check_only_root
from ..module_utils._host.systemd import check_visible
from ..module_utils._node.node import Node

# Imported, so that Ansible brings it.
from ..module_utils._programs import reconcile_program as program
from ..module_utils._reconcile.reconcile import check_owners
from ..module_utils.state.acceptance import STATIC

PROGRAM = program.__name__.partition(".module_utils.")[2]
MODE = 0o755


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    path = parameters["path"]
    place = tree.path(path)
    old = tree.content(path)
    interpreter = parameters["interpreter"] or sys.executable
    new = None
    if parameters["state"] == "present":
        check_visible(tree, interpreter, [path, *parameters["needed"]], parameters["hidden"])
        check_only_root(tree, path, interpreter, PYTHON_FLAGS, parameters["obeyed"])
        node = Node(tree, parameters["config_path"], parameters["kubelet_root"])
        check_settings(node, parameters["settings"], parameters["allow_owners"])
        new = build(PROGRAM, interpreter)
    elif old is not None and (fault := fault_of(tree, path)) is not None:
        remedy = "look at what is there, and give it to root (%s), or remove it by hand" % TO_ROOT
        raise fault.refusal(WOULD_EXECUTE, remedy).adding("nothing was changed")
    owner = None if old is None else _owner(place)
    wanted = None if new is None else (*own_ids(), MODE)
    changed = old != new or owner != wanted
    if changed and not check_mode:
        if new is not None:
            make_directory(os.path.dirname(place))
            replace_file(place, new, MODE, old, backup=False, keep_mode=False, owner=own_ids())
        elif old is not None:
            remove_file(place, old, backup=False)
    user, group = own_ids()
    result = {"file": place, "sha256": _sum(new), "owner": user, "group": group}
    result.update({"interpreter": interpreter, "flags": PYTHON_FLAGS, "sandbox": SANDBOX})
    return Outcome(result, changed, [difference(place, _text(old, owner), _text(new, wanted))])


def check_settings(node: Node, settings: Mapping[str, Any], allow_owners: Sequence[str]) -> None:
    """Raise InputError where the program would not take these settings, or not on this node; RefusedError where it
    would not work here."""
    if settings.get("policy", STATIC) == STATIC:
        check_owners(node, allow_owners)
        return
    check_node(node, read_settings(settings), allow_owners)


def _sum(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _owner(place: str) -> tuple[int, int, int]:
    """Return user, group and mode of a file."""
    status = os.stat(place)
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


def _text(content: bytes | None, owner: tuple[int, int, int] | None) -> str:
    if content is None or owner is None:
        return ""
    user, group, mode = owner
    return "sha256: %s\nowner: %d:%d\nmode: %04o\n" % (_sum(content), user, group, mode)


def main() -> None:
    run(
        work,
        Arguments(
            {
                "path": {"type": "path", "default": "/usr/local/lib/kubenode/cpu-manager-reconcile.pyz"},
                "interpreter": {"type": "path"},
                "hidden": {"type": "list", "elements": "path", "default": []},
                "needed": {"type": "list", "elements": "path", "default": []},
                "obeyed": {"type": "list", "elements": "path", "default": []},
                "config_path": {"type": "path"},
                "kubelet_root": {"type": "path"},
                "allow_owners": {"type": "list", "elements": "str", "default": []},
                "settings": {"type": "dict", "default": {}},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            },
        ),
    )


if __name__ == "__main__":
    main()
