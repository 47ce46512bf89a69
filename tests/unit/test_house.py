# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules of the architecture that a program can check: floors, circles, what is imported, sizes, first lines."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.each import of_each

CHECKOUT = Path(__file__).parents[2]
CORE = CHECKOUT / "plugins" / "module_utils"
DOCS = CHECKOUT / "docs"
PAGES = DOCS / "docsite" / "rst"
PAGE = PAGES / "architecture.rst"

# From the ground up: what stands on a floor imports from it and from those below.
FLOORS = (
    ("errors", "pattern", "startup", "zipapp"),
    ("archive", "arguments", "command", "cpuset", "files", "locking", "quantity", "tree", "versions"),
    ("ansible_module", "golang", "topology", "untrusted", "workload", "writable"),
    ("cgroup", "file_changes", "golang_types"),
    ("cache",),
    ("host",),
    ("isolation",),
    ("state",),
    ("policy",),
    ("kubelet", "reservation_module"),
    ("node",),
    ("node_arguments",),
    ("benchmark", "kubelet_module"),
    ("fleet",),
)
FLOOR_OF = {name: number for number, names in enumerate(FLOORS) for name in names}
# The one file that is written for Ansible.
OF_ANSIBLE = "ansible_module.py"
# Of a concept. More is a reason to ask whether it is one.
MOST_LINES = 700
# Modules that the roles call often on each node, and that need little: how many files of the core each brings. Of the
# first, half are the editor that takes a change out of what others have edited since; hardly a run reads them.
MOST_FILES = {"rollout_journal": 33, "cpuset": 13}
# Files that ask it of bytes, or of what a pattern has matched already.
OF_BYTES = {
    "archive.py",
    "host/interrupts.py",
    "isolation/interrupts.py",
    "isolation/tasks.py",
    "isolation/usage.py",
    "kubelet/file/nodes.py",
    "node/saved_cache.py",
    "node/saved_layers.py",
    "state/decoding.py",
    "tree.py",
}
FILES = sorted(path for path in CORE.rglob("*.py") if path.name != "__init__.py")
# The tests and what makes the documentation, as far as git has them; none in a copy without git.
_LISTED = subprocess.run(
    ["git", "ls-files", "-z", "tests/*.py", "docs/*.py"], cwd=CHECKOUT, check=False, stdout=subprocess.PIPE
).stdout.split(b"\0")
TOOLS = [path for name in _LISTED if name and (path := CHECKOUT / os.fsdecode(name)).is_file()]
OURS = sorted(
    path
    for room in ("plugins", "tests", "docs", "extensions")
    for path in (CHECKOUT / room).rglob("*.py")
    if "output" not in path.parts
)
# Names that say nothing of what they hold.
EMPTY_NAMES = {"one", "other", "known", "thing"}
# Python's own name for the operand of a comparison or of an operator.
OPERAND = "other"


def name_of(path: Path) -> str:
    return str(path.relative_to(CORE))


def place_of(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def room_of(path: Path) -> str:
    """The folder right below module_utils that a file is in, or the file that is there itself."""
    return path.relative_to(CORE).parts[0].partition(".")[0]


@lru_cache(maxsize=None)
def imports(path: Path, at_run_time: bool = False) -> tuple[Path, ...]:
    """The files of the core that a file imports; at run time without those that only a type checker reads."""
    package = path.relative_to(CHECKOUT).parts[:-1]
    found = []
    for node in statements(ast.parse(path.read_text("utf-8")), at_run_time):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = CHECKOUT.joinpath(*package[: len(package) - node.level + 1], *(node.module or "").split("."))
            if place.with_suffix(".py").is_file():
                found.append(place.with_suffix(".py"))
            else:
                found += [file for name in node.names if (file := place / (name.name + ".py")).is_file()]
    return tuple(found)


def statements(node: ast.AST, at_run_time: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if at_run_time and isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from statements(child, at_run_time)


def reached(path: Path, at_run_time: bool = False) -> set[Path]:
    """All files of the core that a file brings with it, itself left out unless it is in a circle."""
    found: set[Path] = set()
    waiting = list(imports(path, at_run_time))
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += imports(file, at_run_time)
    return found


def test_every_room_has_a_floor() -> None:
    assert set(map(room_of, FILES)) == set(FLOOR_OF)


@of_each(FILES)
def test_imports_go_down(path: Path) -> None:
    room = room_of(path)
    for imported in map(room_of, imports(path)):
        assert imported == room or FLOOR_OF[imported] < FLOOR_OF[room], "%s imports %s" % (room, imported)


@of_each(FILES)
def test_what_is_a_number_is_asked_in_one_way(path: Path) -> None:
    """str.isdigit() is true of "²", which int() refuses, and isdecimal() of the digits of all languages."""
    lines = [line for line in path.read_text("utf-8").splitlines() if re.search(r"is(digit|decimal|numeric)\b", line)]
    assert not [line for line in lines if "isascii" not in line and "bytes" not in line] or name_of(path) in OF_BYTES


@of_each(FILES)
def test_there_is_no_circle(path: Path) -> None:
    assert path not in reached(path, at_run_time=True)


@of_each(FILES)
def test_nothing_is_needed_on_a_node_but_python(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            package = str(name).partition(".")[0]
            assert package in sys.stdlib_module_names or (package == "ansible" and name_of(path) == OF_ANSIBLE)


@of_each([*FILES, *TOOLS])
def test_a_file_is_short_and_says_what_is_in_it(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= MOST_LINES
    # The name of a test may say enough.
    assert path in TOOLS or ast.get_docstring(ast.parse(text)), "the first line says nothing"


@pytest.mark.parametrize(("module", "most"), MOST_FILES.items())
def test_a_small_module_brings_little(module: str, most: int) -> None:
    assert len(reached(CHECKOUT / "plugins" / "modules" / (module + ".py"))) <= most


def test_what_is_promised_is_there() -> None:
    """The page names the files whose functions stay as they are between major versions; all others are private."""
    listed = PAGE.read_text("utf-8").partition("\nPublic and private\n---")[2].partition("\n---")[0]
    promised = re.findall(r"^- ``([\w/]+\.py)``", listed, re.MULTILINE)
    assert len(promised) >= 5
    assert [name for name in promised if not (CORE / name).is_file()] == []


def test_the_page_names_every_room() -> None:
    text = PAGE.read_text("utf-8")
    rooms = {path.relative_to(CORE).parent for path in FILES} - {Path()}
    assert [str(room) for room in sorted(rooms) if "``%s/``" % room not in text] == []


def test_the_picture_is_that_of_the_page() -> None:
    drawn = subprocess.run(
        [sys.executable, "-c", "import draw_floors as d; print(d.draw(d.PAGE.read_text('utf-8')), end='')"],
        cwd=DOCS,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert drawn.stdout == (PAGES / "images" / "architecture.svg").read_text("utf-8")


def test_the_floors_are_those_of_the_page() -> None:
    """The two upper rows of its table are no part of the core."""
    table = PAGE.read_text("utf-8").partition("   * - floor\n     - rooms\n")[2].partition("\n\n")[0]
    rows = [re.findall("``([^`]+)``", row) for row in table.split("   * - ")[1:]][2:]
    assert [sorted(name.partition(".")[0].rstrip("/") for name in row) for row in reversed(rows)] == [
        sorted(names) for names in FLOORS
    ]


def test_each_check_has_its_page() -> None:
    written = subprocess.run(
        [sys.executable, "-c", "import json, write_checks; print(json.dumps(write_checks.pages()))"],
        cwd=DOCS,
        check=True,
        stdout=subprocess.PIPE,
    )
    paths = [PAGES / "checks.rst", *(PAGES / "checks").iterdir()]
    pages = {str(path.relative_to(PAGES)): path.read_text("utf-8") for path in paths}
    assert pages == json.loads(written.stdout)


def bound_names(node: ast.AST, function: str = "") -> Iterator[str]:
    """The variables, arguments and functions that a piece of code names; not the operand of an operator's method."""
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield child.name
            inside = child.name
        elif isinstance(child, ast.arg):
            is_operand = child.arg == OPERAND and function.startswith("__") and function.endswith("__")
            yield "" if is_operand else child.arg
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            yield child.attr
        elif isinstance(child, ast.ExceptHandler) and child.name:
            yield child.name
        yield from bound_names(child, inside)


@of_each(OURS)
def test_names_say_what_they_hold(path: Path) -> None:
    found = {name for name in bound_names(ast.parse(path.read_text("utf-8"))) if name.lstrip("_") in EMPTY_NAMES}
    assert not found, place_of(path)
