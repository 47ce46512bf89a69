# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every constant that names a version of Kubernetes stands in the page that says what to do for a new release."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterator

import pytest

CHECKOUT = Path(__file__).parents[2]
CORE = CHECKOUT / "plugins" / "module_utils"
CONTROLLER = CHECKOUT / "plugins" / "plugin_utils"
PAGE = CHECKOUT / "docs" / "docsite" / "rst" / "new_kubernetes_release.rst"
HEADING = "Constants that name a version"

NAME = re.compile(r"(?:.*_)?(?:SINCE|UNTIL|MINORS?|NEWEST|OLDEST)(?:_.*)?")
# A name such as DROP_IN is only one with a number.
NAME_OF_NUMBER = re.compile(r".*_IN")
CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*")
# What a value of a table says of versions.
MEMBERS = frozenset(("since", "until", "removed"))


def defined(tree: ast.Module) -> dict[str, ast.expr | None]:
    """Return {name: value} at the top of a file; several names that get values at once have none here."""
    found: dict[str, ast.expr | None] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                is_one = isinstance(target, ast.Name)
                found.update(
                    (name.id, node.value if is_one else None) for name in ast.walk(target) if isinstance(name, ast.Name)
                )
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node.value
        elif isinstance(node, ast.ClassDef):
            found[node.name] = None
    return found


def is_minor(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "minor") or (
        isinstance(node, ast.Attribute) and node.attr == "minor"
    )


def comparisons(tree: ast.Module) -> Iterator[ast.Compare]:
    """Yield all comparisons with a minor version."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(map(is_minor, (node.left, *node.comparators))):
            yield node


def compared(file: str, tree: ast.Module) -> set[tuple[str, str]]:
    """Return (file that defines it, name) of the constants in these."""
    homes = {
        name.asname or name.name: (imported_from(file, node), name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    return {
        homes.get(node.id, (file, node.id))
        for comparison in comparisons(tree)
        for node in ast.walk(comparison)
        if isinstance(node, ast.Name) and CONSTANT.fullmatch(node.id)
    }


def imported_from(file: str, node: ast.ImportFrom) -> str:
    """Return the file of a relative import."""
    package = file.split("/")[: -node.level or None]
    return "/".join([*package, *(node.module or "").split(".")]) + ".py"


def has_number(value: ast.expr | None) -> bool:
    return value is None or any(
        isinstance(node, ast.Constant) and isinstance(node.value, int) for node in ast.walk(value)
    )


def tables(tree: ast.Module) -> set[str]:
    """Return the classes whose values say since when something is."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name) and member.target.id in MEMBERS
        # A time is a float, and what is returned is no table.
        if "float" not in ast.unparse(member.annotation) and "TypedDict" not in map(ast.unparse, node.bases)
    }


def of_versions(file: str, tree: ast.Module, used: set[tuple[str, str]]) -> set[str]:
    """Return what a file defines that names a version. used: what any file compares with one."""
    found = tables(tree)
    for name, value in defined(tree).items():
        is_number = isinstance(value, ast.Constant) and isinstance(value.value, int)
        if ((NAME.fullmatch(name) or (file, name) in used) and has_number(value)) or (
            NAME_OF_NUMBER.fullmatch(name) and is_number
        ):
            found.add(name)
    return found


def trees() -> dict[str, ast.Module]:
    # By the names that the page has: those of the controller begin with plugins/.
    paths = {path.relative_to(CORE).as_posix(): path for path in sorted(CORE.rglob("*.py"))}
    paths.update((path.relative_to(CHECKOUT).as_posix(), path) for path in sorted(CONTROLLER.rglob("*.py")))
    return {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in paths.items()}


def listed(page: str) -> dict[str, set[str]]:
    """Return {file: constants} of the page."""
    _before, _heading, rest = page.partition(HEADING + "\n---")
    section = rest.partition("\n---")[0]
    rows = re.findall(r"^   \* - ``(.+)``\n     - (.+(?:\n {7}.+)*)$", section, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for file, names in rows:
        found.setdefault(file, set()).update(re.findall("``([^`]+)``", names))
    return found


def test_the_page_has_them_all() -> None:
    files = trees()
    used = {constant for file, tree in files.items() for constant in compared(file, tree)}
    found = {(file, name) for file, tree in files.items() for name in of_versions(file, tree, used)}
    page = {(file, name) for file, names in listed(PAGE.read_text(encoding="utf-8")).items() for name in names}
    assert {"not in the page": found - page, "no longer there": page - found} == {
        "not in the page": set(),
        "no longer there": set(),
    }


def test_versions_have_names() -> None:
    numbers = [
        "%s:%d" % (name, comparison.lineno)
        for name, tree in trees().items()
        for comparison in comparisons(tree)
        if any(
            isinstance(part, ast.Constant) and part.value is not None
            for part in (comparison.left, *comparison.comparators)
        )
    ]
    assert numbers == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("_GATE_SINCE = 35\nSINCE = {}\n_USED_UNTIL: int = 3", {"_GATE_SINCE", "_USED_UNTIL"}),
        ("FIRST_MINOR, LAST_MINOR = 33, 36", {"FIRST_MINOR", "LAST_MINOR"}),
        ('DROP_IN, _LATER_IN = "a", 3\nDROP_IN = "drop-in"\n_ONLY_IN = 36', {"_ONLY_IN"}),
        ("RESPELLED = 36\nif host.minor >= RESPELLED: pass", {"RESPELLED"}),
        ("SIGNALS = {'a': 29}\nknown = SIGNALS.get(name, minor + 1) <= minor", {"SIGNALS"}),
        ("class Flag(NamedTuple):\n    name: str\n    since: int = 0", {"Flag"}),
        ("SMALL = 8\nNAMES = 'a b'\nif count < SMALL or NAMES: pass", set()),
    ],
)
def test_what_names_a_version(source: str, names: set[str]) -> None:
    tree = ast.parse(source)
    assert of_versions("a/b.py", tree, compared("a/b.py", tree)) == names


def test_what_is_used_elsewhere() -> None:
    source = "from .._base.versions import OLD as AGED\nfrom .gates import LIVES\nif AGED < minor < LIVES[0]: pass"
    assert compared("_kubelet/settings.py", ast.parse(source)) == {
        ("_base/versions.py", "OLD"),
        ("_kubelet/gates.py", "LIVES"),
    }
    source = "from ..._base.quantity import MOST\nif minor < MOST: pass"
    assert compared("_kubelet/start/loading.py", ast.parse(source)) == {("_base/quantity.py", "MOST")}
