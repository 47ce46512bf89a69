# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules of the architecture that a program can check: levels, circles, names, sizes, first lines."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.tests.support.each import of_each

CHECKOUT = Path(__file__).parents[2]
CORE = CHECKOUT / "plugins" / "module_utils"
DOCS = CHECKOUT / "docs"
PAGES = DOCS / "docsite" / "rst"
PAGE = PAGES / "architecture.rst"

CONTROLLER = CHECKOUT / "plugins" / "plugin_utils"
COLLECTION = ("ansible_collections", "kubenode", "cpu_manager")

# From the lowest level up: a package imports from those of the levels below, and from those before it in its own.
LEVELS = {
    "values, files, and what is public": ("_base", "_cgroup", "state", "topology", "_containers", "policy"),
    "the kubelet and the node": ("_host", "_owners", "_runtime", "_kubelet", "_node"),
    "features": (
        "_caches",
        "_dra",
        "_isolation",
        "_published",
        "_reconcile",
        "_benchmark",
        "_dynamic",
        "_trial",
        "_rollout",
        "_housekeeping",
        "_programs",
        "_saved",
        "_change",
    ),
}
PACKAGES = [package for packages in LEVELS.values() for package in packages]
# A value of the lowest level that is public has no folder.
OF_BASE = "cpuset"
# Which feature imports which other, and why.
FEATURES = {
    ("_benchmark", "_isolation"): "the weights of cgroup v2 that a benchmark gives its cgroups",
    ("_dynamic", "_published"): "what was given out is written for the workloads",
    ("_dynamic", "_reconcile"): "whether somebody else gives containers their CPUs",
    ("_dynamic", "_caches"): "the groups of resctrl follow what a pass gave out",
    ("_rollout", "_reconcile"): "whether a kubelet that has started reconciles",
    ("_rollout", "_trial"): "the node's own kubelet tries the start that is planned",
    ("_housekeeping", "_rollout"): "both journals hold files as they were",
    ("_change", "_rollout"): "the plan is carried out by its journal",
    ("_change", "_reconcile"): "cpusets of containers are a part of the plan",
    ("_change", "_saved"): "what is shown of the kubelet's files has no secrets",
    ("_programs", "_caches"): "the program of a node runs a pass of each feature",
    ("_programs", "_dynamic"): "the program of a node runs a pass of each feature",
    ("_programs", "_published"): "the program of a node runs a pass of each feature",
    ("_programs", "_reconcile"): "the program of a node runs a pass of each feature",
    ("_saved", "_caches"): "which files of resctrl are read",
    ("_saved", "_housekeeping"): "which files of the host are read",
    ("_saved", "_isolation"): "which files of cgroups are read",
}
# The one file that is written for Ansible.
OF_ANSIBLE = "_base/ansible_module.py"
# Of the tasks of a rollout: files, lines of all, and lines of an expression.
MOST_TASK_FILES, MOST_TASK_LINES, MOST_EXPRESSION_LINES = 11, 410, 3
EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# An import in a function keeps so many lines from being compiled on most nodes, with all that it brings.
FEWEST_LINES_KEPT = 300
MOST_LATE_IMPORTS = 69
# How many files of the core a module brings, which Ansible packs at every run: of modules that the roles call often on
# each node, and that need little, and of three that people wait for. Of the first, half are the editor that takes a
# change out of what others have edited since; hardly a run reads them.
MOST_FILES_OF = {"rollout_journal": 33, "cpuset": 13, "allocation_plan": 94, "cache_info": 94, "housekeeping_info": 99}
# How many lines of the core a node compiles before such a module begins.
MOST_LINES_AT_ONCE = {"allocation_plan": 15800, "cache_info": 9950, "drift_info": 8900, "housekeeping_info": 10600}
# Files that ask it of bytes, or of what a pattern has matched already.
OF_BYTES = {
    "_base/archive.py",
    "_base/tree.py",
    "_host/layers.py",
    "_isolation/sample.py",
    "_isolation/watch.py",
    "_kubelet/yaml_nodes.py",
    "_saved/files_of_machine.py",
    "state/decoding.py",
}
FILES = sorted(path for path in CORE.rglob("*.py") if path.name != "__init__.py")
OF_CONTROLLER = sorted(path for path in CONTROLLER.rglob("*.py") if path.name != "__init__.py")
# The tests and what makes the documentation, as far as git has them; none in a copy without git.
_LISTED = subprocess.run(
    ["git", "ls-files", "-z", "tests/*.py", "docs/*.py"], cwd=CHECKOUT, check=False, stdout=subprocess.PIPE
).stdout.split(b"\0")
TOOLS = [path for name in _LISTED if name and (path := CHECKOUT / os.fsdecode(name)).is_file()]
OURS = sorted(
    path
    for folder in ("plugins", "tests", "docs", "extensions")
    for path in (CHECKOUT / folder).rglob("*.py")
    if "output" not in path.parts
)
# Files of other projects that the code names.
OF_OTHERS = {"consts.py", "zipimport.py"}
# What a setting of the kubelet is written in: its row, and the lists that Ansible reads without our code.
FILES_OF_A_SETTING = {
    "plugins/module_utils/_kubelet/settings.py",
    "plugins/doc_fragments/settings.py",
    "roles/kubelet/meta/argument_specs.yml",
    "roles/kubelet/vars/main.yml",
}
MOST_FILES_OF_A_SETTING = 4
WITH_SETTINGS = ("plugins", "roles", "playbooks", "meta", "docs")
PLAIN_SETTING = "cpu_manager_reconcile_period"
# Names that say nothing of what they hold.
EMPTY_NAMES = {"one", "other", "known", "thing"}
# Python's own name for the operand of a comparison or of an operator.
OPERAND = "other"


def name_of(path: Path) -> str:
    return str(path.relative_to(CORE))


def place_of(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def package_of(path: Path) -> str:
    """Return the folder right below module_utils that a file is in."""
    package = path.relative_to(CORE).parts[0].partition(".")[0]
    return "_base" if package == OF_BASE else package


def level_of(package: str) -> int:
    return next(number for number, packages in enumerate(LEVELS.values()) if package in packages)


@lru_cache(maxsize=None)
def imports(path: Path, at_run_time: bool = False, at_once: bool = False) -> tuple[Path, ...]:
    """Return the files of the core that a file imports; at run time without those that only a type checker reads,
    and at once without those that functions import."""
    package = path.relative_to(CHECKOUT).parts[:-1]
    found = []
    for node in statements(ast.parse(path.read_text("utf-8")), at_run_time or at_once, at_once):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = CHECKOUT.joinpath(*package[: len(package) - node.level + 1], *(node.module or "").split("."))
            if place.with_suffix(".py").is_file():
                found.append(place.with_suffix(".py"))
            else:
                found += [file for name in node.names if (file := place / (name.name + ".py")).is_file()]
    return tuple(found)


def statements(node: ast.AST, at_run_time: bool, at_once: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if at_run_time and isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if at_once and isinstance(child, ast.FunctionDef):
            continue
        yield child
        yield from statements(child, at_run_time, at_once)


def count_lines(path: Path) -> int:
    return path.read_text("utf-8").count("\n")


def reached(path: Path, at_run_time: bool = False, at_once: bool = False) -> set[Path]:
    """Return all files of the core that a file brings with it, itself left out unless it is in a circle."""
    found: set[Path] = set()
    waiting = list(imports(path, at_run_time, at_once))
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += imports(file, at_run_time, at_once)
    return found


def late_imports(path: Path) -> set[Path]:
    """Return the files that a file imports in functions alone."""
    return set(imports(path, at_run_time=True)) - set(imports(path, at_once=True))


def test_every_package_has_a_level() -> None:
    assert sorted(set(map(package_of, FILES))) == sorted(PACKAGES)


@of_each(FILES)
def test_imports_go_down(path: Path) -> None:
    package = package_of(path)
    for imported in map(package_of, imports(path)):
        if package == imported or level_of(imported) < level_of(package):
            continue
        assert PACKAGES.index(imported) < PACKAGES.index(package), "%s imports %s" % (package, imported)
        assert level_of(package) < len(LEVELS) - 1 or (package, imported) in FEATURES, "not in FEATURES"


def test_each_reason_has_its_import() -> None:
    found = {(package_of(path), package_of(imported)) for path in FILES for imported in imports(path)}
    assert set(FEATURES) <= found


@of_each(FILES)
def test_no_other_file_has_its_name(path: Path) -> None:
    assert [name_of(file) for file in FILES if file.name == path.name] == [name_of(path)]


def test_the_tasks_of_a_rollout_carry_out_and_decide_little() -> None:
    texts = [path.read_text("utf-8") for path in (CHECKOUT / "roles/kubelet/tasks").rglob("*.yml")]
    assert len(texts) <= MOST_TASK_FILES
    assert sum(text.count("\n") for text in texts) <= MOST_TASK_LINES
    expressions = [found for text in texts for found in EXPRESSION.findall(text)]
    assert len(expressions) > 60
    assert [found for found in expressions if found.count("\n") >= MOST_EXPRESSION_LINES] == []


def test_no_two_classes_have_one_name() -> None:
    names = [
        node.name
        for path in [*FILES, *OF_CONTROLLER]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_a_name_is_imported_from_the_file_that_makes_it() -> None:
    found = {
        "%s imports %s from %s" % (place_of(path), alias.name, place_of(file))
        for path in OURS
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (file := file_of(path, node)) is not None
        for alias in node.names
        if alias.name in borrowed_names(file)
    }
    assert sorted(found) == []


def file_of(path: Path, node: ast.ImportFrom) -> Path | None:
    """Return the file of ours that an import names, if it is one."""
    names = (node.module or "").split(".")
    if node.level:
        place = path.parents[node.level - 1].joinpath(*names)
    else:
        place = CHECKOUT.joinpath(*names[len(COLLECTION) :]) if tuple(names[: len(COLLECTION)]) == COLLECTION else path
    file = place.with_suffix(".py")
    return file if file != path and file.is_file() else None


@lru_cache(maxsize=None)
def borrowed_names(path: Path) -> set[str]:
    """Return the names in a file that others have made: imported ones, and those that stand for one of another file."""
    body = ast.parse(path.read_text("utf-8")).body
    imported = [alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    named = {
        ast.unparse(target)
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute)
        for target in node.targets
        if ast.unparse(target) == node.value.attr
    }
    return {*imported, *named}


def test_an_import_in_a_function_keeps_much_from_being_compiled() -> None:
    late = [(path, imported) for path in FILES for imported in sorted(late_imports(path))]
    assert len(late) <= MOST_LATE_IMPORTS
    kept = {}
    for path, imported in late:
        more = {imported, *reached(imported, at_once=True)} - reached(path, at_once=True) - {path}
        kept["%s imports %s" % (name_of(path), name_of(imported))] = sum(map(count_lines, more))
    assert {what: lines for what, lines in kept.items() if lines < FEWEST_LINES_KEPT} == {}


@of_each(FILES)
def test_what_is_a_number_is_asked_in_one_way(path: Path) -> None:
    """str.isdigit() is true of "²", which int() refuses, and isdecimal() of the digits of all languages."""
    lines = [line for line in path.read_text("utf-8").splitlines() if re.search(r"is(digit|decimal|numeric)\b", line)]
    assert not [line for line in lines if "isascii" not in line and "bytes" not in line] or name_of(path) in OF_BYTES


@of_each(FILES)
def test_there_is_no_circle(path: Path) -> None:
    """Imports for types alone count, too."""
    assert path not in reached(path)


@of_each(FILES)
def test_nothing_is_needed_on_a_node_but_python(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            package = str(name).partition(".")[0]
            assert package in sys.stdlib_module_names or (package == "ansible" and name_of(path) == OF_ANSIBLE)


@of_each([*FILES, *OF_CONTROLLER, *TOOLS])
def test_a_file_says_which_concept_it_is(path: Path) -> None:
    # The name of a test may say enough.
    assert path in TOOLS or ast.get_docstring(ast.parse(path.read_text("utf-8"))), "the first line says nothing"


@pytest.mark.parametrize(("module", "most"), MOST_FILES_OF.items())
def test_a_small_module_brings_little(module: str, most: int) -> None:
    assert len(reached(CHECKOUT / "plugins" / "modules" / (module + ".py"))) <= most


@pytest.mark.parametrize(("module", "most"), MOST_LINES_AT_ONCE.items())
def test_little_is_compiled_before_a_module_begins(module: str, most: int) -> None:
    path = CHECKOUT / "plugins" / "modules" / (module + ".py")
    assert sum(map(count_lines, reached(path, at_once=True))) <= most


def test_each_file_that_is_named_is_there() -> None:
    """In docstrings and comments of the code, and on the page on architecture and that of a new release."""
    places = [*OURS, PAGE, PAGES / "new_kubernetes_release.rst"]
    there = {path.name for path in OURS} | OF_OTHERS
    named = {
        "%s: %s" % (place_of(path), name)
        for path in places
        if "tests" not in path.relative_to(CHECKOUT).parts
        for name in re.findall(r"(?<![\w%*{}-])[a-z_]\w*\.py\b", path.read_text("utf-8"))
        if name not in there
    }
    assert sorted(named) == []


def test_what_is_promised_is_there() -> None:
    """The page names the files whose functions stay as they are between major versions; all others are private."""
    listed = PAGE.read_text("utf-8").partition("\nPublic and private\n---")[2].partition("\n---")[0]
    promised = re.findall(r"^- ``([\w/]+\.py)``", listed, re.MULTILINE)
    assert len(promised) >= 5
    assert [name for name in promised if not (CORE / name).is_file()] == []


def test_the_page_names_every_package() -> None:
    table = PAGE.read_text("utf-8").partition("   * - level\n     - packages\n")[2].partition("\n\n")[0]
    rows = [re.findall("``([^`]+)``", row) for row in table.split("   * - ")[1:]][2:]
    assert [[name.partition(".")[0].rstrip("/") for name in row if name != "cpuset.py"] for row in reversed(rows)] == [
        list(packages) for packages in LEVELS.values()
    ]


def test_a_setting_is_one_row_and_what_has_to_be_written_out() -> None:
    listed = subprocess.run(["git", "ls-files", "-z", *WITH_SETTINGS], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE)
    paths = [os.fsdecode(path) for path in listed.stdout.split(b"\0") if path]
    texts = {path: (CHECKOUT / path).read_text("utf-8", "replace") for path in paths}
    named_in = {
        name: {path for path, text in texts.items() if re.search(r"\b(kubelet_)?%s\b" % name, text)}
        for name in SETTINGS
    }
    assert set.intersection(*named_in.values()) == FILES_OF_A_SETTING
    assert len(FILES_OF_A_SETTING) <= MOST_FILES_OF_A_SETTING
    # Of a setting that nothing reads for what it means.
    others = named_in[PLAIN_SETTING] - FILES_OF_A_SETTING
    assert {path for path in others if name_is_in_code(PLAIN_SETTING, path, texts[path])} == set()


def name_is_in_code(name: str, path: str, text: str) -> bool:
    """Return whether a file has a name elsewhere than in examples of its documentation, and is no page."""
    return not path.endswith((".rst", ".md")) and name in text.partition('\nEXAMPLES = r"""')[0]


def test_the_picture_is_that_of_the_page() -> None:
    drawn = subprocess.run(
        [sys.executable, "-c", "import draw_levels as d; print(d.draw(d.PAGE.read_text('utf-8')), end='')"],
        cwd=DOCS,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert drawn.stdout == (PAGES / "images" / "architecture.svg").read_text("utf-8")


def bound_names(node: ast.AST, function: str = "") -> Iterator[str]:
    """Yield the variables, arguments and functions that a piece of code names; not the operand of an operator's
    method."""
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
