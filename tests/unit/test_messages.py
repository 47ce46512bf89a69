# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Ansible makes of a message: what is written in YAML, and what a plugin raises."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Iterator

import yaml

CHECKOUT = Path(__file__).parent.parent.parent
# What Jinja reads, of a text.
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts of a YAML document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def test_no_expression_has_an_escape() -> None:
    """Ansible doubles each backslash of an expression before Jinja reads it: a message would show it."""
    found = [
        (str(path.relative_to(CHECKOUT)), expression)
        for place in ("roles", "playbooks")
        for path in sorted((CHECKOUT / place).rglob("*.yml"))
        for text in texts_in(yaml.safe_load(path.read_bytes()))
        for expression in _EXPRESSION.findall(text)
        if re.search(r"\\[ntr]", expression)
    ]
    assert found == []


def test_what_ansible_is_told_is_told_once() -> None:
    """From ansible-core 2.19 on, a message is followed by those of all causes, which say the same."""
    chained = [
        "%s:%d" % (path.relative_to(CHECKOUT), raised.lineno)
        for path in sorted((CHECKOUT / "plugins").rglob("*.py"))
        if "module_utils" not in path.parts
        for handler in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(handler, ast.ExceptHandler)
        for raised in ast.walk(handler)
        if isinstance(raised, ast.Raise) and isinstance(raised.exc, ast.Call)
        if isinstance(raised.exc.func, ast.Name) and raised.exc.func.id.startswith("Ansible")
        if not (isinstance(raised.cause, ast.Constant) and raised.cause.value is None)
    ]
    assert chained == []
