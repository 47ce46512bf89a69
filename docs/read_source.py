# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads files of the core: their statements, calls, constants and functions, and where each stands."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Sequence, Tuple

from placeholders import BEGIN, END, label, name_of

CORE = Path(__file__).resolve().parent.parent / "plugins/module_utils"


class Module(NamedTuple):
    """A file of the core."""

    path: Path
    tree: ast.Module
    constants: Mapping[str, ast.expr]
    functions: Mapping[str, ast.FunctionDef]
    # {name: (file, name there)}
    imports: Mapping[str, tuple[Path, str]]


# ((the statements of a block, the number of the one in which an expression is), ...) from the inside.
Blocks = Tuple[Tuple[Sequence[ast.stmt], int], ...]


class Scope(NamedTuple):
    """Where an expression stands: the statements around it from the inside, and what is known of parameters."""

    module: Module
    blocks: Blocks = ()
    parameters: Mapping[str, tuple[str, ...]] = {}
    depth: int = 0

    def above(self, number: int, level: int) -> Scope:
        """Return the scope of the statement with this number in the block of this level."""
        statements = self.blocks[level][0]
        return self._replace(blocks=((statements, number), *self.blocks[level + 1 :]))


@lru_cache(maxsize=None)
def module_of(path: Path) -> Module:
    tree = ast.parse(path.read_text("utf-8"))
    constants = {name: value for statement in tree.body for name, value in bindings(statement)}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                file = base.with_suffix(".py") if node.module and base.with_suffix(".py").is_file() else None
                file = file or base / (alias.name + ".py")
                imports[alias.asname or alias.name] = (file, alias.name)
    return Module(path, tree, constants, functions, imports)


def bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) of an assignment; of `a, b = c, d` both."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets, value = [statement.target], statement.value
    elif isinstance(statement, ast.Assign):
        targets, value = list(statement.targets), statement.value
    else:
        return
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple):
            values = value.elts if isinstance(value, ast.Tuple) else [None] * len(target.elts)
            for name, part in zip(target.elts, values):
                if isinstance(name, ast.Name):
                    yield name.id, part or ast.Constant(BEGIN + label(name.id) + END)


def statements_of(body: Sequence[ast.stmt], outer: Blocks = ()) -> Iterator[tuple[ast.stmt, Blocks]]:
    """Yield all statements of a block and of those inside of it, with where they stand; a function begins anew."""
    for number, statement in enumerate(body):
        blocks = ((body, number), *outer)
        yield statement, blocks
        is_definition = isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for block in inner_blocks(statement):
            yield from statements_of(block, () if is_definition else blocks)


@lru_cache(maxsize=None)
def calls_of(path: Path) -> list[tuple[ast.Call, Scope]]:
    """Return all calls of a file, with where they stand."""
    module = module_of(path)
    return [
        (node, Scope(module, blocks))
        for statement, blocks in statements_of(module.tree.body)
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for expression in ast.iter_child_nodes(statement)
        if isinstance(expression, ast.expr)
        for node in ast.walk(expression)
        if isinstance(node, ast.Call)
    ]


def inner_blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


def function_of(name: ast.expr, module: Module) -> tuple[Module, ast.FunctionDef] | None:
    short = name_of(name)
    if isinstance(name, ast.Attribute) and name_of(name.value) != "self":
        return _method(short, name_of(name.value), module)
    if short in module.functions:
        return module, module.functions[short]
    file, there = module.imports.get(short, (None, ""))
    if file is None or not file.is_file():
        return None
    imported = module_of(file)
    return (imported, imported.functions[there]) if there in imported.functions else None


def _method(name: str, owner: str, module: Module) -> tuple[Module, ast.FunctionDef] | None:
    """Return a function of an imported module, or a method of a class of one that is imported for its functions."""
    files = (
        [module.imports[owner][0]] if owner in module.imports else [file for file, _there in module.imports.values()]
    )
    for file in dict.fromkeys(files):
        if file.is_file() and name in module_of(file).functions:
            return module_of(file), module_of(file).functions[name]
    return None
