# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the roles and playbooks: what an operator can set, and what their YAML reads or sets itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import jinja2
import jinja2.meta
import yaml

CHECKOUT = Path(__file__).parents[2]
FILES = sorted(
    path
    for pattern in ("roles/*/tasks/**/*.yml", "roles/*/vars/*.yml", "roles/*/defaults/*.yml", "playbooks/**/*.yml")
    for path in CHECKOUT.glob(pattern)
)
# What Ansible takes for an expression as it is.
_CONDITIONS = ("when", "that", "until", "failed_when", "changed_when")
_JINJA = jinja2.Environment(autoescape=False)  # nothing is rendered


class _Any(dict[str, Any]):
    """Every filter and test is there."""

    def get(self, *_name: Any) -> Any:
        return max


_JINJA.filters, _JINJA.tests = _Any(), _Any()


def options() -> dict[str, dict[str, Any]]:
    """Return what an operator can set by the argument specifications of all roles: {name: its specification}."""
    found = {}
    for path in sorted(CHECKOUT.glob("roles/*/meta/argument_specs.yml")):
        for entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            found.update(entry_point.get("options", {}))
    return found


def read_in(path: Path) -> set[str]:
    """Return the names that the templates and conditions of a file read, as far as these do not set them."""
    return set(_read(yaml.safe_load(path.read_text("utf-8"))))


def registered_in(path: Path) -> set[str]:
    """Return the names that results, and set_fact, have in a file."""
    return set(_registered(yaml.safe_load(path.read_text("utf-8"))))


def scoped_in(path: Path) -> set[str]:
    """Return the names that a file gives to plays, blocks and tasks as their vars, which have priority over facts."""
    return set(_scoped(yaml.safe_load(path.read_text("utf-8"))))


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, dict) else (("", item) for item in value)


def _read(value: Any, is_condition: bool = False) -> Iterator[str]:
    if isinstance(value, str):
        template = "{{ %s }}" % value if is_condition else value
        # As Ansible does: a backslash is a backslash.
        yield from jinja2.meta.find_undeclared_variables(_JINJA.parse(template.replace("\\", "\\\\")))
    elif isinstance(value, (dict, list)):
        for key, member in _members(value):
            yield from _read(member, key in _CONDITIONS or (is_condition and isinstance(value, list)))


def _registered(value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        for key, member in _members(value):
            if key == "register":
                yield member
            elif key == "ansible.builtin.set_fact":
                yield from member
            else:
                yield from _registered(member)


def _scoped(value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        for key, member in _members(value):
            if key in ("vars", "loop_control"):
                yield from member if key == "vars" else [member.get("loop_var", "item")]
            yield from _scoped(member)
