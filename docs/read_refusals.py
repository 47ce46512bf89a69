# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads from the source of the core which refusals of the kubelet it can word: texts, causes and remedies.

The code that predicts is the only place where they stand. Parts that depend on a node become placeholders. An
expression has several values where it depends on a condition.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Sequence

from placeholders import name_of, words
from read_source import CORE, Module, Scope, calls_of, function_of, module_of, statements_of
from read_values import DEEPEST, arguments_of, values_of

# What makes a refusal: {name: its parameters}.
_TEXT_ONLY = ("text",)
_WITH_REMEDY = ("text", "remedy")
MAKERS: Mapping[str, Sequence[str]] = {
    "refused": ("text", "cause", "remedy", "where"),
    "harmful": ("cause", "remedy", "where", "text"),
    "StartError": ("text", "cause", "remedy", "where", "context"),
    "_AmountError": ("text", "cause", "remedy"),
    "DecodeError": ("text", "where", "cause", "remedy"),
    "EvictionFault": ("field", "signal", "text"),
    "Admission": ("admitted", "reason", "text"),
    "MemoryJudgement": ("verdict", "text"),
    "KubeletError": _WITH_REMEDY,
    "TooManyNodesError": _WITH_REMEDY,
    "StateError": _TEXT_ONLY,
    "CheckpointError": _TEXT_ONLY,
    "MemoryStateError": _TEXT_ONLY,
    "SMTAlignmentError": _TEXT_ONLY,
    "AllocationError": _TEXT_ONLY,
    "EmptyPodPoolError": _TEXT_ONLY,
    "TakeError": _TEXT_ONLY,
    "EndlessDistributionError": _TEXT_ONLY,
    "GoError": _TEXT_ONLY,
    "FaultError": _TEXT_ONLY,
    "PartError": ("text", "part", "expected"),
}
# Which folders and files of the core word refusals.
SOURCES = (
    "_kubelet/flags.py",
    "_kubelet/start/*.py",
    "_kubelet/yaml_composer.py",
    "_kubelet/yaml_scanner.py",
    "policy/options.py",
    "policy/reservation.py",
    "policy/hints.py",
    "policy/manager.py",
    "policy/static.py",
    "policy/assignment.py",
    "state/*.py",
    "_node/start_check.py",
    "_base/golang.py",
)

# What is put into the words of another refusal.
_PARTS = frozenset(("_node/start_check.py:stored_state",))

# A refusal that is not certain is none.
_UNCERTAIN = {"MemoryJudgement": ("verdict", "not judged"), "FaultError": ("is_sure", "False")}


class Refusal(NamedTuple):
    """One place in the code that words a refusal: each part with its possible values."""

    # The file, and after a colon the function or class at its top that has it.
    place: str
    line: int
    # The name of what is made: "refused", "KubeletError" and so on.
    made: str
    texts: tuple[str, ...]
    causes: tuple[str, ...]
    remedies: tuple[str, ...]


def refusals() -> list[Refusal]:
    """Return all of them, in the order of files and lines."""
    files = sorted({path for source in SOURCES for path in CORE.glob(source)})
    return [refusal for path in files for refusal in _refusals_of(module_of(path))]


def _refusals_of(module: Module) -> Iterator[Refusal]:
    makers = [_maker_in(module.path, name) for name in module.functions]
    in_makers = {maker[0].lineno for maker in makers if maker is not None}
    for call, scope in calls_of(module.path):
        made = None if call.lineno in in_makers else _made(call, scope)
        if made is None:
            continue
        texts = tuple(text for text in made.get("text", ()) if words(text))
        place = "%s:%s" % (module.path.relative_to(CORE).as_posix(), _top_of(module.path, call.lineno))
        if texts and place not in _PARTS:
            causes, remedies = (tuple(filter(None, made.get(part, ()))) for part in ("cause", "remedy"))
            yield Refusal(place, call.lineno, *made["made"], texts, causes, remedies)


@lru_cache(maxsize=None)
def _tops(path: Path) -> Sequence[ast.FunctionDef | ast.ClassDef]:
    return [
        node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]


def _top_of(path: Path, line: int) -> str:
    return next((node.name for node in _tops(path) if node.lineno <= line <= (node.end_lineno or line)), "")


# --- what a call makes -----------------------------------------------------------------------------------


def _made(call: ast.Call, scope: Scope) -> dict[str, tuple[str, ...]] | None:
    """Return the parts of the refusal that a call makes, {name: values}; None where it makes none."""
    name = name_of(call.func)
    if name in MAKERS:
        arguments = dict(zip(MAKERS[name], call.args))
        arguments.update({word.arg: word.value for word in call.keywords if word.arg})
        made = {part: values_of(expression, scope) for part, expression in arguments.items()}
        made["made"] = (name,)
        part, uncertain = _UNCERTAIN.get(name, ("", ""))
        return None if uncertain and made.get(part) == (uncertain,) else made
    found = function_of(call.func, scope.module)
    if found is None or scope.depth > DEEPEST:
        return None
    module, function = found
    inner = _maker_in(module.path, function.name)
    if inner is None:
        return None
    made_by, inner_scope = inner
    parameters = arguments_of(function, call, scope)
    return _made(made_by, inner_scope._replace(parameters=parameters, depth=scope.depth + 1))


@lru_cache(maxsize=None)
def _maker_in(path: Path, name: str) -> tuple[ast.Call, Scope] | None:
    """Return the call in a function that makes a refusal of the text that the function is given; None for other
    functions."""
    module = module_of(path)
    function = module.functions[name]
    if "text" not in {argument.arg for argument in function.args.args}:
        return None
    for statement, blocks in statements_of(function.body):
        if not isinstance(statement, (ast.Return, ast.Expr)):
            continue
        for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
            if name_of(call.func) != name and "text" in _names_in(call.args) and _is_maker(call.func, module):
                return call, Scope(module, blocks)
    return None


def _is_maker(name: ast.expr, module: Module) -> bool:
    found = None if name_of(name) in MAKERS else function_of(name, module)
    return name_of(name) in MAKERS or (found is not None and _maker_in(found[0].path, found[1].name) is not None)


def _names_in(arguments: Sequence[ast.expr]) -> set[str]:
    return {node.id for argument in arguments for node in ast.walk(argument) if isinstance(node, ast.Name)}
