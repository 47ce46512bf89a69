# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that kubernetes.core can be used. The module of this name documents it, and looks at the host."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any, Mapping

import yaml
from ansible.errors import AnsibleActionFail

from ..module_utils._base.errors import CPUManagerError
from ..plugin_utils.controller_action import validated
from ..plugin_utils.guarded_action import GuardedAction, failure_of

# The collection is what the first package ansible with a supported ansible-core brings, and the library what that
# collection asks for: tests/release runs both. galaxy.yml and meta/ee-requirements.txt name them, too.
COLLECTION_VERSION = "5.0.0"
LIBRARY_VERSION = "24.2.0"
# What a program decides by.
KIND = "requirement"

_ARGUMENTS: dict[str, dict[str, object]] = {
    "purpose": {"type": "str", "required": True},
    "alternative": {"type": "str", "default": ""},
}


class ActionModule(GuardedAction):
    """Looks for the collection here, and for the library where its modules run."""

    READS_NODE = False

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the task: the versions, and where it fails, all that is missing."""
        given, refused = validated(_ARGUMENTS, self._task.args)
        if refused:
            raise refused
        module = "kubenode.cpu_manager.kubernetes_core_check"
        on_host = self._execute_module(module_name=module, module_args=given, task_vars=task_vars)
        if "python" not in on_host:
            return dict(on_host)  # such as a host that cannot be reached
        library, python = on_host["library"], on_host["python"]
        try:
            collection = collection_version()
        except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
            raise AnsibleActionFail("the collection kubernetes.core is damaged: %s" % error) from None
        host = self._task.delegate_to or task_vars["inventory_hostname"]
        found = {"changed": False, "collection": collection, "library": library, "python": python}
        problems, commands = [], []
        if wrong := _wrong(collection, COLLECTION_VERSION):
            problems.append("the collection kubernetes.core on the controller %s" % wrong)
            commands.append("ansible-galaxy collection install --upgrade 'kubernetes.core:>=%s'" % COLLECTION_VERSION)
        if wrong := _wrong(library, LIBRARY_VERSION):
            problems.append("the Python library kubernetes of %s on %s %s" % (python, host, wrong))
            commands.append("%s -m pip install 'kubernetes>=%s'" % (python, LIBRARY_VERSION))
        if not problems:
            return found
        remedies = ["run %s" % " && ".join(commands), *filter(None, [given["alternative"]])]
        failure = CPUManagerError(" and ".join(problems), given["purpose"], ", or ".join(remedies), KIND)
        return {**found, **failure_of(failure)}


def collection_version() -> str | None:
    """Return the version of kubernetes.core; empty where it has none, None where it is not installed."""
    try:
        package = import_module("ansible_collections.kubernetes.core")
    except ImportError:
        return None
    directories = [Path(directory) for directory in package.__path__]
    for directory in directories:
        # An installed collection has the one, a checkout the other.
        if (manifest := directory / "MANIFEST.json").is_file():
            return str(yaml.safe_load(manifest.read_bytes())["collection_info"].get("version") or "")
        if (galaxy := directory / "galaxy.yml").is_file():
            return str(yaml.safe_load(galaxy.read_bytes()).get("version") or "")
    return "" if any((directory / "plugins").is_dir() for directory in directories) else None


def _wrong(version: str | None, lowest: str) -> str:
    """Return what is wrong with a version; empty for a good one, and for one that is not known."""
    if version is None:
        return "is not installed"
    if version == "" or is_at_least(version, lowest):
        return ""
    return "is %s, and has to be %s or later" % (version, lowest)


def is_at_least(version: str, lowest: str) -> bool:
    """Return whether a version such as 24.2.0 is not older than another. What follows the numbers does not count."""
    return _numbers(version) >= _numbers(lowest)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
