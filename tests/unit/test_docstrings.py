# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docstrings of functions say what the function does: they begin with a verb. `pytest -s` prints how many do not."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("plugins", "docs", "extensions", "tests")
# A new verb is one word more here.
VERBS = """
Accept Account Add Admit Allocate Announce Answer Ask Be Begin Boot Bring Build Call Carry Change Check Choose Close
Compare Compile Connect Copy Count Damage Decide Decode Deploy Divide Do Draw Edit End Fail Fall Fill Find Forget Get
Give Go Have Hear Hold Ignore Import Install Judge Keep Kill Leave Let Lift Load Lock Log Look Make Mark Mount Move
Note Open Pass Place Plan Plug Post Predict Prepare Print Publish Put Raise Read Refuse Register Release Remove Repair
Replace Replay Report Restore Return Run Sample Save Say See Set Show Skip Start Stop Take Tell Try Undo Unmount Unpack
Wait Work Write Yield
"""
# Of a hundred.
MOST = 2


def functions() -> Iterator[tuple[str, str]]:
    """Yield (where it is, the docstring's first word) of each function, properties and tests apart."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("test_"):
                continue
            if any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                continue
            words = (ast.get_docstring(node) or "").split()
            if words:
                yield "%s:%d" % (path.relative_to(ROOT), node.lineno), words[0].rstrip(".,:;")


def test_a_docstring_begins_with_a_verb() -> None:
    found, verbs = list(functions()), frozenset(VERBS.split())
    others = ["%s: %s" % (where, word) for where, word in found if word not in verbs]
    print("%d of %d docstrings of functions begin without a verb" % (len(others), len(found)))
    assert len(found) > 4000
    assert len(others) * 100 <= MOST * len(found), "\n".join(others)
