# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names that a user may rely on until the next major version: see docs/docsite/rst/compatibility.rst.

PROMISED has those of the last release, and what came since where `make keep` has written it again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.metrics import HELP
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import KNOWN

from .pages import CHECKOUT
from .values import documentation

PROMISED = Path(__file__).with_name("promised.txt")
# What a node writes for Prometheus: {file of module_utils: (what is before a name there, how all begin)}.
OF_NODES = {
    "_programs/reconcile_program.py": (r"# HELP ", ""),
    "_dynamic/program.py": (r'_metric\(\s*"', "kubenode_cpu_manager_dynamic_"),
}


def names() -> list[str]:
    """Return all names of this version, each after what it is a name of."""
    found = {
        "playbook": (path.stem for path in (CHECKOUT / "playbooks").glob("*.yml")),
        "role": (path.parent.parent.name for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml")),
        "variable": KNOWN,
        "check": CHECKS,
        "metric": [*HELP, *metrics_of_nodes()],
        "option": _of_modules(lambda said: said["doc"].get("options"), "suboptions"),
        "return": _of_modules(lambda said: said["return"], "contains"),
    }
    return sorted("%s %s" % (kind, name) for kind, of_kind in found.items() for name in set(of_kind))


def metrics_of_nodes() -> Iterator[str]:
    """Yield those that the role reconcile and its policies write on a node."""
    for file, (before, prefix) in OF_NODES.items():
        text = (CHECKOUT / "plugins" / "module_utils" / file).read_text("utf-8")
        yield from (prefix + name for name in re.findall(before + r"(\w+)", text))


def _of_modules(members: Callable[[Any], Any], below: str) -> Iterator[str]:
    for module, said in documentation().items():
        # Those of others have a dot.
        if "." not in module:
            yield from ("%s %s" % (module, name) for name in _members(members(said) or {}, below))


def _members(members: Mapping[str, Any], below: str) -> Iterator[str]:
    for name, member in members.items():
        yield name
        yield from ("%s.%s" % (name, inner) for inner in _members(member.get(below) or {}, below))


def removed(promised: str) -> list[str]:
    """Return what of a list is no longer there."""
    return sorted(set(promised.splitlines()) - set(names()))
