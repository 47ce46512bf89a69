# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No argument of a module or role is a secret: how a version of ansible-core masks those cannot change an answer."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Iterator

import yaml

CHECKOUT = Path(__file__).parents[2]
# What ansible-test sanity takes for a secret by its name, which a module then has to mark with no_log.
LOOKS_SECRET = re.compile(r"(?:pass(?!ive)|secret|token|cryptkey)", re.IGNORECASE)


def options_of(specification: Any) -> Iterator[tuple[str, Any]]:
    """All options with their names, also those within others."""
    for name, option in (specification.get("options") or {}).items():
        yield name, option
        yield from options_of(option)


def documentation(path: Path) -> Any:
    for statement in ast.parse(path.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "DOCUMENTATION":
            return yaml.safe_load(ast.literal_eval(statement.value))
    return {}


def test_no_argument_is_masked() -> None:
    """As a keyword, as a key of a dict, or by another file of this collection."""
    sources = {path: path.read_text("utf-8") for path in (CHECKOUT / "plugins").rglob("*.py")}
    assert len(sources) > 100
    assert [path for path, text in sources.items() if re.search(r"""["']?\bno_log\b["']?\s*[:=]""", text)] == []
    for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"):
        for entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            assert [name for name, option in options_of(entry_point) if "no_log" in option] == [], path


def test_no_argument_has_the_name_of_a_secret() -> None:
    named = []
    for path in (CHECKOUT / "plugins" / "modules").glob("*.py"):
        named += [name for name, _option in options_of(documentation(path))]
    for path in (CHECKOUT / "plugins" / "doc_fragments").glob("*.py"):
        named += re.findall(r"^  (\w+):$", path.read_text("utf-8"), re.MULTILINE)
    for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"):
        for entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            named += [name for name, _option in options_of(entry_point)]
    assert len(named) > 200
    assert list(filter(LOOKS_SECRET.search, named)) == []
