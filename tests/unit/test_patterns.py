# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No text of a stranger keeps a regular expression of the collection busy: its time grows as the text does.

Each expression is found in the source, parsed, and given long texts of all that it repeats, behind what has to stand
before that, and with an end that does not match.
"""

from __future__ import annotations

import ast
import importlib
import re
import signal
import sys
import time
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any, Iterable, Iterator, NamedTuple, NoReturn

import pytest

# Since Python 3.11, the parser is within the package.
parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

PLUGINS = Path(__file__).parents[2] / "plugins"
PACKAGE = "ansible_collections.kubenode.cpu_manager.plugins"
FILES = {path: path.read_text("utf-8") for path in sorted(PLUGINS.rglob("*.py"))}
TREES = {path: ast.parse(text) for path, text in FILES.items() if "re." in text or "Pattern" in text}

METHODS = ("match", "fullmatch", "search", "findall", "finditer", "split", "sub", "subn")

# What takes longer than usual with the shorter text is looked at with the longer one. What is linear takes some
# hundredths of a second for that, and what is quadratic some ten seconds.
SHORT, LONG = 4_000, 100_000
USUAL_SECONDS, MOST_SECONDS = 0.001, 1.0  # of processor time
# More repetitions than that are as good as any number.
MANY = 50
# Of the kinds of characters that an expression tells apart, those that are mixed with each other.
MOST_MIXED = 10
STRANGE = "\x01"

# How many expressions of a file are made when it runs: of what the operator gives, or of constants.
MADE = {
    "module_utils/_benchmark/benchmark_plan.py": 3,
    "plugin_utils/report/terminal.py": 1,
    "module_utils/_owners/owners.py": 1,
    "module_utils/_kubelet/configuration.py": 1,
    "module_utils/_kubelet/yaml_scanner.py": 1,
    "module_utils/_kubelet/distributions.py": 1,
    "module_utils/_kubelet/flag_files.py": 1,
    "module_utils/_kubelet/state_removal.py": 1,
    "module_utils/_base/startup.py": 1,
    "module_utils/_base/secrets.py": 2,
    "module_utils/_kubelet/redacted_words.py": 1,
}


class Use(NamedTuple):
    """An expression, and the method by which it is applied to a text."""

    place: str
    pattern: str | bytes
    flags: int
    method: str


# --- the expressions ---------------------------------------------------------------------------------------


def place_of(path: Path) -> str:
    return str(path.relative_to(PLUGINS))


def calls_in(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls that take an expression, each with the method of the module re."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            module, _dot, name = ast.unparse(node.func).rpartition(".")
            if name == "Pattern" and not module:
                yield node, "compile"
            elif module == "re" and name in (*METHODS, "compile"):
                yield node, name


def evaluated(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "pattern", "eval"), dict(vars(module)))


def flags_of(call: ast.Call, module: ModuleType) -> int:
    given = [*call.args[1:], *(word.value for word in call.keywords)]
    return sum(int(evaluated(node, module)) for node in given if ast.unparse(node).startswith("re."))


@lru_cache(maxsize=None)
def applied_in(path: Path) -> dict[str, set[str]]:
    """Return the attributes that a file takes of each name; of one that is handed on, that of who matches it there."""
    found: dict[str, set[str]] = {}
    objects = set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add("match" if node.attr == "end" else node.attr)
            objects.add(node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in objects:
            found.setdefault(node.id, set()).add("match")
    return found


def methods_of(name: str, path: Path) -> list[str]:
    """Return how the expression that a file calls so is applied."""
    places = [path] if name.startswith("_") else TREES
    found = {method for place in places for method in applied_in(place).get(name, ())}
    return sorted(found.intersection(METHODS)) or ["fullmatch", "match"]


def names_of(tree: ast.AST) -> dict[ast.Call, str]:
    """Return what the expressions of a file are called that have a name."""
    found: dict[ast.Call, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts))
            for name, call in pairs:
                if isinstance(name, ast.Name) and isinstance(call, ast.Call):
                    found[call] = name.id
    return found


def uses_in(path: Path) -> tuple[list[Use], int]:
    """Return the expressions of a file, and how many are made of what is known only when it runs."""
    calls = list(calls_in(TREES[path]))
    if not calls:
        return [], 0
    module = importlib.import_module(".".join((PACKAGE, *path.relative_to(PLUGINS).with_suffix("").parts)))
    names, found, made = names_of(TREES[path]), [], 0
    for call, method in calls:
        try:
            pattern = evaluated(call.args[0], module)
        except NameError:
            made += 1
            continue
        methods = [method]
        if method == "compile":
            methods = methods_of(names.get(call, "_"), path)
        place = "%s:%d" % (place_of(path), call.lineno)
        found += [Use(place, pattern, flags_of(call, module), method) for method in methods]
    return found, made


USES = {path: uses_in(path) for path in TREES}


# --- the texts ---------------------------------------------------------------------------------------------


def samples(items: Iterable[Any]) -> list[str]:
    """Return short texts that match a parsed expression, or nearly: of each choice one."""
    texts = [""]
    for op, value in items:
        name = str(op)
        if name == "LITERAL":
            parts = [chr(value)]
        elif name in ("IN", "NOT_LITERAL", "ANY"):
            parts = [next(sign for sign in (*ALPHABET, *first_of(value)) if holds(op, value, sign))]
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            parts = [text * max(value[0], 0) for text in samples(value[2])]
        elif name == "SUBPATTERN":
            parts = samples(value[3])
        elif name == "ATOMIC_GROUP":
            parts = samples(value)
        elif name == "BRANCH":
            parts = [text for choice in value[1] for text in samples(choice)]
        else:
            continue  # it takes no character
        texts = [text + part for text in texts for part in dict.fromkeys(parts)][:8]
    return list(dict.fromkeys(texts))


def first_of(value: Any) -> list[str]:
    """Return the first characters of the parts of a set, for one that has none of the alphabet."""
    parts = value if isinstance(value, list) else []
    return [chr(inner if str(op) == "LITERAL" else inner[0]) for op, inner in parts if str(op) in ("LITERAL", "RANGE")]


ALPHABET = [*"aA0- \n\t.:/\"'=#,", *map(chr, range(128)), "é", "\u2028", "\xa0"]


def holds(op: object, value: Any, character: str) -> bool:
    """Return whether one step of a parsed expression takes a character."""
    name, code = str(op), ord(character)
    if name == "LITERAL":
        return bool(code == value)
    if name == "NOT_LITERAL":
        return bool(code != value)
    if name == "ANY":
        return character != "\n"
    if name == "RANGE":
        return bool(value[0] <= code <= value[1])
    if name == "CATEGORY":
        letters = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}
        kind = str(value).replace("CATEGORY_", "").replace("UNI_", "")
        letter = letters[kind.replace("NOT_", "")]
        return re.fullmatch("\\" + (letter.upper() if "NOT_" in kind else letter), character) is not None
    negated = str(value[0][0]) == "NEGATE"
    return any(holds(op, inner, character) for op, inner in value[negated:]) != negated


def steps(items: Iterable[Any], before: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield each step of a parsed expression, with a text that leads to it."""
    for op, value in items:
        name = str(op)
        yield before, op, value
        inner = []
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            inner = [value[2]]
        elif name == "SUBPATTERN":
            inner = [value[3]]
        elif name == "ATOMIC_GROUP":
            inner = [value]
        elif name == "BRANCH":
            inner = value[1]
        elif name in ("ASSERT", "ASSERT_NOT"):
            inner = [value[1]]
        for part in inner:
            yield from steps(part, before)
        before += samples([(op, value)])[0]


def attacks(pattern: str | bytes, flags: int) -> list[tuple[str, str]]:
    """Return what an expression may take long for: (what stands before, what is repeated)."""
    tree = parser.parse(pattern, flags)
    found = list(steps(tree, ""))
    atoms = [(op, value) for _before, op, value in found if str(op) in ("LITERAL", "NOT_LITERAL", "IN", "ANY")]
    # Of characters that the expression does not tell apart, one will do. Words and lines end between characters.
    of_kind = {
        (*(holds(op, value, sign) for op, value in atoms), sign.isalnum() or sign == "_", sign == "\n"): sign
        for sign in reversed(ALPHABET)
    }
    kinds = [of_kind[kind] for kind in sorted(of_kind, key=sum, reverse=True)]
    pumps = [("", sign) for sign in kinds]
    pumps += [("", first + second) for first, second in combinations(kinds[:MOST_MIXED], 2)]
    pumps += [("", text) for text in samples(tree)]
    for before, op, value in found:
        if str(op) in ("MAX_REPEAT", "MIN_REPEAT") and value[1] > MANY:
            bodies = samples(value[2])
            pumps += [(before, text) for text in (*bodies, *kinds)]
            pumps += [("", before + text) for text in bodies]
            pumps += [("", before + text + STRANGE) for text in bodies]
    return [(before, text) for before, text in dict.fromkeys(pumps) if text]


# --- the time ----------------------------------------------------------------------------------------------


class TooLongError(Exception):
    """An expression is still at work."""


def give_up(_signal: int, _frame: object) -> NoReturn:
    raise TooLongError


@pytest.fixture
def _ends() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, give_up)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def seconds(use: Use, text: str) -> float:
    """Return the processor time that an expression takes for a text, or the limit where it was not done by then."""
    compiled: Any = re.compile(use.pattern, use.flags)
    given: Any = text if isinstance(use.pattern, str) else text.encode("utf-8")
    arguments = (given[:0], given) if use.method in ("sub", "subn") else (given,)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        found = getattr(compiled, use.method)(*arguments)
        if use.method == "finditer":
            list(found)
    except TooLongError:
        return MOST_SECONDS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - start


def is_slow(use: Use, before: str, pump: str, end: str) -> bool:
    def text(length: int) -> str:
        return before + pump * (length // len(pump)) + end

    return seconds(use, text(SHORT)) > USUAL_SECONDS and seconds(use, text(LONG)) >= MOST_SECONDS


@pytest.mark.usefixtures("_ends")
@pytest.mark.parametrize("path", [path for path, (uses, _made) in USES.items() if uses], ids=place_of)
def test_no_text_takes_long(path: Path) -> None:
    slow = [
        (use.place, use.method, use.pattern, before, pump)
        for use in USES[path][0]
        for before, pump in attacks(use.pattern, use.flags)
        if any(is_slow(use, before, pump, end) for end in ("", STRANGE))
    ]
    assert slow == []


def test_what_is_made_when_it_runs() -> None:
    """These cannot be found here, and are of what the operator gives, or of constants."""
    assert {place_of(path): made for path, (_uses, made) in USES.items() if made} == MADE


@pytest.mark.usefixtures("_ends")
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\r+(\n|\Z)", "sub"),
        ("(a|aa)+$", "match"),
        ("a:(x*x*)b", "fullmatch"),
    ],
)
def test_an_expression_that_takes_long_is_found(pattern: str, method: str) -> None:
    use = Use("here", pattern, 0, method)
    assert any(is_slow(use, before, pump, end) for before, pump in attacks(pattern, 0) for end in ("", STRANGE))
