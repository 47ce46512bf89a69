# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which texts an expression in the core can become: what is assigned before it, and what the functions return."""

from __future__ import annotations

import ast
import re
from itertools import product
from typing import Iterator

from placeholders import BEGIN, END, label, label_of, name_of, renamed, words
from read_source import Scope, bindings, function_of, inner_blocks, module_of, statements_of

# An expression of more values, or of shorter ones that a function makes, is one placeholder.
_MOST = 24
_LEAST_LETTERS = 8
DEEPEST = 5
_DIRECTIVE = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[a-z])")


def arguments_of(function: ast.FunctionDef, call: ast.Call, scope: Scope) -> dict[str, tuple[str, ...]]:
    """Return the values of a function's parameters in a call."""
    names = [argument.arg for argument in function.args.args]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    given = dict(zip(reversed(names), reversed(function.args.defaults)))
    given.update(zip(names, call.args))
    given.update({word.arg: word.value for word in call.keywords if word.arg})
    return {name: values_of(expression, scope) for name, expression in given.items()}


def values_of(node: ast.expr, scope: Scope) -> tuple[str, ...]:
    """Return the texts that an expression can have."""
    found = tuple(dict.fromkeys(_texts(node, scope)))
    return found if 0 < len(found) <= _MOST else (BEGIN + label_of(node) + END,)


def _texts(node: ast.expr, scope: Scope) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield "" if node.value is None else str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from values_of(node.body, scope)
        yield from values_of(node.orelse, scope)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from (text for text in values_of(value, scope) if text)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for left, right in product(values_of(node.left, scope), values_of(node.right, scope)):
            yield left + right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield from _formatted(node, scope)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from (*values_of(node.left, scope), "")
    elif isinstance(node, ast.Name):
        yield from _named(node.id, scope)
    elif isinstance(node, ast.Call):
        yield from _called(node, scope)
    elif isinstance(node, (ast.SetComp, ast.GeneratorExp)):
        yield from values_of(node.elt, scope)
    else:
        yield BEGIN + label_of(node) + END


def _formatted(node: ast.BinOp, scope: Scope) -> Iterator[str]:
    operands = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    for template in values_of(node.left, scope):
        directives = [match.group() for match in _DIRECTIVE.finditer(template) if match.group() != "%%"]
        parts = _DIRECTIVE.split(template.replace("%%", "\0"))
        if len(directives) == len(operands):
            choices = [values_of(operand, scope) for operand in operands]
        else:
            choices = [(BEGIN + label_of(node.right) + END,)] * len(directives)
        if len(parts) != len(choices) + 1:
            continue
        for chosen in product(*choices):
            text = parts[0] + "".join(value + part for value, part in zip(chosen, parts[1:]))
            yield text.replace("\0", "%")


def _called(node: ast.Call, scope: Scope) -> Iterator[str]:
    name = name_of(node.func)
    if name.strip("_") in ("quote", "quoted") and node.args:
        for text in values_of(node.args[0], scope):
            yield '"%s"' % text
        return
    if name in ("str", "min", "next") and node.args:
        yield from values_of(node.args[0], scope)
        return
    found = function_of(node.func, scope.module)
    if found is None or scope.depth > DEEPEST:
        yield BEGIN + label_of(node) + END
        return
    module, function = found
    inside = Scope(module, (), arguments_of(function, node, scope), scope.depth + 1)
    returned = [
        text
        for statement, blocks in statements_of(function.body)
        if isinstance(statement, ast.Return) and statement.value is not None
        for text in values_of(statement.value, inside._replace(blocks=blocks))
    ]
    texts = [text for text in returned if words(text) >= _LEAST_LETTERS]
    yield from texts or [BEGIN + label_of(node) + END]


# --- names -----------------------------------------------------------------------------------------------------


def _named(name: str, scope: Scope) -> Iterator[str]:
    """Yield what a variable, a parameter or a constant can be here."""
    found, is_certain = _assigned(name, scope, 0)
    yield from found
    if is_certain:
        return
    if name in scope.parameters:
        yield from scope.parameters[name]
        return
    if found:
        return
    module = scope.module
    if name not in module.constants and name in module.imports:
        file, name_there = module.imports[name]
        if file.is_file() and name_there in module_of(file).constants:
            yield from values_of(module_of(file).constants[name_there], Scope(module_of(file), depth=scope.depth + 1))
            return
    if name in module.constants and scope.depth <= DEEPEST:
        yield from values_of(module.constants[name], Scope(module, depth=scope.depth + 1))
        return
    yield BEGIN + label(name) + END


def _assigned(name: str, scope: Scope, level: int) -> tuple[list[str], bool]:
    """Return the values that reach this place from above, and whether the name surely has one of them."""
    found: list[str] = []
    for depth in range(level, len(scope.blocks)):
        statements, at = scope.blocks[depth]
        for number in range(at - 1, -1, -1):
            values, is_certain = _assigned_by(statements[number], name, scope.above(number, depth))
            found += values
            if is_certain:
                return found, True
    return found, False


def _assigned_by(statement: ast.stmt, name: str, scope: Scope) -> tuple[list[str], bool]:
    for target, value in bindings(statement):
        if target == name:
            return [renamed(text, name) for text in values_of(value, scope)], True
    if isinstance(statement, ast.AugAssign) and name_of(statement.target) == name:
        whole = ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value)
        return list(values_of(whole, scope)), True
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [], False
    blocks = list(inner_blocks(statement))
    found: list[str] = []
    ways = []
    for block in blocks:
        if isinstance(block[-1], (ast.Return, ast.Raise, ast.Continue)):
            ways.append(True)
            continue
        inner = scope._replace(blocks=((block, len(block)), *scope.blocks))
        values, is_certain = _assigned_in(name, inner)
        found += values
        ways.append(is_certain)
    has_else = isinstance(statement, ast.If) and bool(statement.orelse)
    return found, bool(found) and has_else and all(ways)


def _assigned_in(name: str, scope: Scope) -> tuple[list[str], bool]:
    """Return the same, of the innermost block alone."""
    found: list[str] = []
    statements, at = scope.blocks[0]
    for number in range(at - 1, -1, -1):
        values, is_certain = _assigned_by(statements[number], name, scope.above(number, 0))
        found += values
        if is_certain:
            return found, True
    return found, False
