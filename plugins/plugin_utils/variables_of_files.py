# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with the variables of a file of an inventory, as far as it can be known without a node.

Names are compared with those of variables.py, values with the arguments of the roles, and the kubelet's settings with
their own rules. A value with a template is not looked at.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import yaml
from ansible.module_utils.common.yaml import yaml_load

from ..module_utils._base.errors import InputError, call_options
from ..module_utils._kubelet.settings import SETTINGS, check_settings
from ..module_utils._node.reservation_request import PLANNER
from ..module_utils.policy.options import texts_of_options
from .controller_action import validated
from .impact.gate import checked_waivers as waivers_of_impact
from .report.results import checked_waivers as waivers_of_report
from .variables import misspelled
from .yaml_of_others import check_size

_ROLES = Path(__file__).resolve().parents[2] / "roles"
_PREFIX = "kubelet_"
_VAULT = b"$ANSIBLE_VAULT"
_WAIVERS: Mapping[str, Callable[[Sequence[object], str], object]] = {
    "drift_report_waivers": waivers_of_report,
    "cpu_manager_impact_waivers": waivers_of_impact,
}


class _Loader(yaml.SafeLoader):
    """Takes what Ansible's own tags mark, such as !vault and !unsafe, for a value that is not looked at."""


_Loader.add_multi_constructor("!", lambda _loader, _tag, _node: "{{ }}")


def wrong_in_file(path: Path) -> list[str]:
    """Return what is wrong with the variables of one file; nothing for a file that is encrypted as a whole."""
    try:
        content = path.read_bytes()
        if content.startswith(_VAULT):
            return []
        check_size(content.decode("utf-8"))
        found = yaml.load(content, _Loader)  # it is a safe one
    except (InputError, OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        return ["it cannot be read: %s" % " ".join(str(error).split())]
    if found is None:
        return []
    if isinstance(found, list) and all(isinstance(play, dict) for play in found):
        return list(dict.fromkeys(wrong for given in _given_in(found) for wrong in wrong_variables(given)))
    if not isinstance(found, dict):
        return ["it is not a mapping of variables; write them as NAME: VALUE"]
    return wrong_variables(_named(found))


def _named(variables: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in variables.items()}


def _given_in(part: object) -> Iterator[dict[str, Any]]:
    """Yield the variables of plays, roles, blocks and tasks: of each keyword `vars`."""
    if isinstance(part, dict):
        if isinstance(part.get("vars"), dict):
            yield _named(part["vars"])
        for name, inner in part.items():
            if name != "vars":
                yield from _given_in(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _given_in(inner)


def wrong_variables(variables: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with variables of a host or group: names that are meant to be ours, and values of ours."""
    return [*_wrong_names(variables), *_wrong_values(variables)]


def _wrong_names(variables: Mapping[str, Any]) -> Iterator[str]:
    for found in misspelled(variables):
        remedy = "did you mean %s?" % found["meant"] if found["meant"] else "remove it, or give it another name"
        yield "%s is no variable of this collection; %s" % (found["name"], remedy)


def _wrong_values(variables: Mapping[str, Any]) -> Iterator[str]:
    plain = {name: value for name, value in variables.items() if value is not None and not _has_template(value)}
    waivers = {name: value for name, value in plain.items() if name in _WAIVERS and isinstance(value, list)}
    for name, value in waivers.items():
        yield from _wrong_waivers(name, value)
    given = {name: value for name, value in plain.items() if name in _arguments() and name not in waivers}
    # One after the other: what is wrong with a value hides nothing that is wrong with the next.
    values = {}
    for name, value in given.items():
        checked, wrong = validated({name: _arguments()[name]}, {name: value}, name_of=str)
        if wrong:
            yield str(wrong)
        else:
            values.update(checked)
    yield from _wrong_settings(values)
    if {"kubelet_reserved_system_cpus", "kubelet_reservation"} <= set(plain):
        yield "kubelet_reserved_system_cpus and kubelet_reservation exclude each other; remove one"


def _wrong_settings(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the rules of the kubelet's settings refuse, each alone."""
    call_options({name: _PREFIX + name for name in SETTINGS})
    try:
        for name, setting in SETTINGS.items():
            value = values.get(_PREFIX + name)
            if value is not None:
                try:
                    check_settings({name: texts_of_options(value) if setting.argument["type"] == "dict" else value})
                except InputError as error:
                    yield str(error)
    finally:
        call_options({})


def _wrong_waivers(name: str, waivers: Sequence[object]) -> Iterator[str]:
    """Yield what the rules of waivers refuse, each alone."""
    for number, waiver in enumerate(waivers):
        try:
            _WAIVERS[name]([waiver], name)
        except InputError as error:
            yield str(error).replace(name + "[0]", "%s[%d]" % (name, number), 1)


def _has_template(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_template, [*value, *value.values()]))
    if isinstance(value, list):
        return any(map(_has_template, value))
    return isinstance(value, str) and ("{{" in value or "{%" in value)


@lru_cache(maxsize=None)
def _arguments() -> Mapping[str, Mapping[str, Any]]:
    """Return {variable: its form}, of all roles and their entry points."""
    # The roles leave it to a module to check what is within.
    found: dict[str, Mapping[str, Any]] = {_PREFIX + "reservation": {"type": "dict", "options": PLANNER}}
    for path in sorted(_ROLES.glob("*/meta/argument_specs.yml")):
        for entry_point in yaml_load(path.read_bytes())["argument_specs"].values():
            for name, form in (entry_point.get("options") or {}).items():
                # What a run has to have may be in another file.
                found.setdefault(name, {**form, "required": False, "default": None})
    return found
