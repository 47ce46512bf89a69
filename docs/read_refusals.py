# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads from the source of the core which refusals of the kubelet it can word: texts, causes and remedies.

The code that predicts is the only place where they stand. Parts that depend on a node become placeholders. An
expression has several values where it depends on a condition.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Sequence, Tuple

CORE = Path(__file__).resolve().parent.parent / "plugins/module_utils"

# Around the name of a part that depends on a node.
BEGIN, END = "\ue000", "\ue001"
PLACEHOLDER = re.compile(BEGIN + "([^%s]*)" % END + END)

# What makes a refusal: {name: its parameters}.
_TEXT_ONLY = ("text",)
_WITH_REMEDY = ("text", "remedy")
MAKERS: Mapping[str, Sequence[str]] = {
    "refused": ("text", "cause", "remedy", "where"),
    "harmful": ("cause", "remedy", "where", "text"),
    "StartError": ("text", "cause", "remedy", "where", "context"),
    "_AmountError": ("text", "cause", "remedy"),
    "DecodeError": ("text", "where", "cause", "remedy"),
    "Fault": ("field", "signal", "text"),
    "Admission": ("admitted", "reason", "text"),
    "MemoryJudgement": ("verdict", "text"),
    "KubeletError": _WITH_REMEDY,
    "TooManyNodesError": _WITH_REMEDY,
    "StateError": _TEXT_ONLY,
    "CheckpointError": _TEXT_ONLY,
    "MemoryStateError": _TEXT_ONLY,
    "SMTAlignmentError": _TEXT_ONLY,
    "AllocationError": _TEXT_ONLY,
    "TakeError": _TEXT_ONLY,
    "EndlessDistributionError": _TEXT_ONLY,
    "GoError": _TEXT_ONLY,
    "FaultError": _TEXT_ONLY,
}
# Which folders and files of the core word refusals.
SOURCES = (
    "kubelet/start/**/*.py",
    "kubelet/file/yaml_rare/*.py",
    "kubelet/file/json_fault.py",
    "policy/options.py",
    "policy/kubelet_reservation.py",
    "policy/hints.py",
    "policy/manager.py",
    "policy/static.py",
    "policy/packed.py",
    "policy/distributed.py",
    "state/*.py",
    "node/start_report.py",
    "golang.py",
)

# An expression of more values, or of shorter ones that a function makes, is one placeholder.
_MOST = 24
_LEAST_LETTERS = 8
_DEPTH = 5
# What placeholders are called, where the code has another name.
_LABELS = {
    "duration_text": "duration",
    "float_text": "number",
    "for_people": "amount",
    "kind_of": "type",
    "len": "number",
    "map_text": "options",
    "minor": "version",
    "one_of": "options",
    "pooled_cpus": "CPUs of the node",
    "printed": "amount",
}
# Variables whose names say less than what they are made of, and methods that say nothing.
_PLAIN_NAMES = ("found", "said", "shown", "text", "what")
_PLAIN_LABELS = ("get", "replace", "rstrip", "value")
# A refusal that is not certain is none.
_UNCERTAIN = {"MemoryJudgement": ("verdict", "not judged"), "FaultError": ("is_sure", "False")}
_DIRECTIVE = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[a-z])")


class Refusal(NamedTuple):
    """One place in the code that words a refusal: each part with its possible values."""

    file: str
    line: int
    # The name of what is made: "refused", "KubeletError" and so on.
    made: str
    texts: tuple[str, ...]
    causes: tuple[str, ...]
    remedies: tuple[str, ...]


class _Module(NamedTuple):
    """A file of the core."""

    path: Path
    tree: ast.Module
    constants: Mapping[str, ast.expr]
    functions: Mapping[str, ast.FunctionDef]
    # {name: (file, name there)}
    imports: Mapping[str, tuple[Path, str]]


# ((the statements of a block, the number of the one in which an expression is), ...) from the inside.
_Blocks = Tuple[Tuple[Sequence[ast.stmt], int], ...]


class _Scope(NamedTuple):
    """Where an expression stands: the statements around it from the inside, and what is known of parameters."""

    module: _Module
    blocks: _Blocks = ()
    parameters: Mapping[str, tuple[str, ...]] = {}
    depth: int = 0

    def above(self, number: int, level: int) -> _Scope:
        """The scope of the statement with this number in the block of this level."""
        statements = self.blocks[level][0]
        return self._replace(blocks=((statements, number), *self.blocks[level + 1 :]))


def shown(template: str) -> str:
    """A template as people read it."""
    return PLACEHOLDER.sub(lambda match: "<%s>" % match.group(1), template)


def is_in(template: str, text: str) -> bool:
    """Whether a text, with single spaces, has what a template can become."""
    longest, compiled = _pattern(template)
    return longest in text and compiled.search(text) is not None


def becomes(template: str, text: str) -> bool:
    """Whether a text, with single spaces, is what a template can become."""
    return _pattern(template)[1].fullmatch(text) is not None


@lru_cache(maxsize=None)
def _pattern(template: str) -> tuple[str, re.Pattern[str]]:
    """(the longest part that is no placeholder, all parts)"""
    literals = [" ".join((part + "|").split())[:-1] for part in PLACEHOLDER.split(template)[::2]]
    return max(literals, key=len), re.compile(".*".join(map(re.escape, literals)), re.DOTALL)


def words(template: str) -> int:
    """How many letters of a template are no placeholder."""
    return sum(map(str.isalpha, PLACEHOLDER.sub("", template)))


def refusals() -> list[Refusal]:
    """All of them, in the order of files and lines."""
    files = sorted({path for source in SOURCES for path in CORE.glob(source)})
    return [refusal for path in files for refusal in _refusals_of(_module(path))]


def _refusals_of(module: _Module) -> Iterator[Refusal]:
    makers = [_maker_in(module.path, name) for name in module.functions]
    in_makers = {maker[0].lineno for maker in makers if maker is not None}
    for call, scope in _calls_of(module.path):
        made = None if call.lineno in in_makers else _made(call, scope)
        if made is None:
            continue
        texts = tuple(text for text in made.get("text", ()) if words(text))
        if texts:
            file = module.path.relative_to(CORE).as_posix()
            causes, remedies = (tuple(filter(None, made.get(part, ()))) for part in ("cause", "remedy"))
            yield Refusal(file, call.lineno, *made["made"], texts, causes, remedies)


# --- files -------------------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _module(path: Path) -> _Module:
    tree = ast.parse(path.read_text("utf-8"))
    constants = {name: value for statement in tree.body for name, value in _bindings(statement)}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                file = base.with_suffix(".py") if node.module and base.with_suffix(".py").is_file() else None
                file = file or base / (alias.name + ".py")
                imports[alias.asname or alias.name] = (file, alias.name)
    return _Module(path, tree, constants, functions, imports)


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """(name, value) of an assignment; of `a, b = c, d` both."""
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
                    yield name.id, part or ast.Constant(BEGIN + _label(name.id) + END)


def _statements(body: Sequence[ast.stmt], outer: _Blocks = ()) -> Iterator[tuple[ast.stmt, _Blocks]]:
    """All statements of a block and of those inside of it, with where they stand; a function begins anew."""
    for number, statement in enumerate(body):
        blocks = ((body, number), *outer)
        yield statement, blocks
        is_definition = isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for block in _inner_blocks(statement):
            yield from _statements(block, () if is_definition else blocks)


@lru_cache(maxsize=None)
def _calls_of(path: Path) -> list[tuple[ast.Call, _Scope]]:
    """All calls of a file, with where they stand."""
    module = _module(path)
    return [
        (node, _Scope(module, blocks))
        for statement, blocks in _statements(module.tree.body)
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for expression in ast.iter_child_nodes(statement)
        if isinstance(expression, ast.expr)
        for node in ast.walk(expression)
        if isinstance(node, ast.Call)
    ]


def _inner_blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


# --- what a call makes -----------------------------------------------------------------------------------


def _made(call: ast.Call, scope: _Scope) -> dict[str, tuple[str, ...]] | None:
    """The parts of the refusal that a call makes, {name: values}; None where it makes none."""
    name = _name(call.func)
    if name in MAKERS:
        arguments = dict(zip(MAKERS[name], call.args))
        arguments.update({word.arg: word.value for word in call.keywords if word.arg})
        made = {part: _values(expression, scope) for part, expression in arguments.items()}
        made["made"] = (name,)
        part, uncertain = _UNCERTAIN.get(name, ("", ""))
        return None if uncertain and made.get(part) == (uncertain,) else made
    found = _function(call.func, scope.module)
    if found is None or scope.depth > _DEPTH:
        return None
    module, function = found
    inner = _maker_in(module.path, function.name)
    if inner is None:
        return None
    made_by, inner_scope = inner
    parameters = _arguments(function, call, scope)
    return _made(made_by, inner_scope._replace(parameters=parameters, depth=scope.depth + 1))


@lru_cache(maxsize=None)
def _maker_in(path: Path, name: str) -> tuple[ast.Call, _Scope] | None:
    """The call in a function that makes a refusal of the text that the function is given; None for other functions."""
    module = _module(path)
    function = module.functions[name]
    if "text" not in {argument.arg for argument in function.args.args}:
        return None
    for statement, blocks in _statements(function.body):
        if not isinstance(statement, (ast.Return, ast.Expr)):
            continue
        for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
            if _name(call.func) != name and "text" in _names_in(call.args) and _is_maker(call.func, module):
                return call, _Scope(module, blocks)
    return None


def _is_maker(name: ast.expr, module: _Module) -> bool:
    found = None if _name(name) in MAKERS else _function(name, module)
    return _name(name) in MAKERS or (found is not None and _maker_in(found[0].path, found[1].name) is not None)


def _names_in(arguments: Sequence[ast.expr]) -> set[str]:
    return {node.id for argument in arguments for node in ast.walk(argument) if isinstance(node, ast.Name)}


def _arguments(function: ast.FunctionDef, call: ast.Call, scope: _Scope) -> dict[str, tuple[str, ...]]:
    """The values of a function's parameters in a call."""
    names = [argument.arg for argument in function.args.args]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    given = dict(zip(reversed(names), reversed(function.args.defaults)))
    given.update(zip(names, call.args))
    given.update({word.arg: word.value for word in call.keywords if word.arg})
    return {name: _values(expression, scope) for name, expression in given.items()}


def _function(name: ast.expr, module: _Module) -> tuple[_Module, ast.FunctionDef] | None:
    short = _name(name)
    if isinstance(name, ast.Attribute) and _name(name.value) != "self":
        return _method(short, _name(name.value), module)
    if short in module.functions:
        return module, module.functions[short]
    file, there = module.imports.get(short, (None, ""))
    if file is None or not file.is_file():
        return None
    imported = _module(file)
    return (imported, imported.functions[there]) if there in imported.functions else None


def _method(name: str, owner: str, module: _Module) -> tuple[_Module, ast.FunctionDef] | None:
    """A function of an imported module, or a method of a class of one that is imported for its functions."""
    files = [module.imports[owner][0]] if owner in module.imports else [file for file, _name in module.imports.values()]
    for file in dict.fromkeys(files):
        if file.is_file() and name in _module(file).functions:
            return _module(file), _module(file).functions[name]
    return None


# --- the values of an expression -----------------------------------------------------------------------------


def _values(node: ast.expr, scope: _Scope) -> tuple[str, ...]:
    """The texts that an expression can have."""
    found = tuple(dict.fromkeys(_texts(node, scope)))
    return found if 0 < len(found) <= _MOST else (BEGIN + _label_of(node) + END,)


def _texts(node: ast.expr, scope: _Scope) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield "" if node.value is None else str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from _values(node.body, scope)
        yield from _values(node.orelse, scope)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from (text for text in _values(value, scope) if text)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for left, right in product(_values(node.left, scope), _values(node.right, scope)):
            yield left + right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield from _formatted(node, scope)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from (*_values(node.left, scope), "")
    elif isinstance(node, ast.Name):
        yield from _named(node.id, scope)
    elif isinstance(node, ast.Call):
        yield from _called(node, scope)
    elif isinstance(node, (ast.SetComp, ast.GeneratorExp)):
        yield from _values(node.elt, scope)
    else:
        yield BEGIN + _label_of(node) + END


def _formatted(node: ast.BinOp, scope: _Scope) -> Iterator[str]:
    operands = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    for template in _values(node.left, scope):
        directives = [match.group() for match in _DIRECTIVE.finditer(template) if match.group() != "%%"]
        parts = _DIRECTIVE.split(template.replace("%%", "\0"))
        if len(directives) == len(operands):
            choices = [_values(operand, scope) for operand in operands]
        else:
            choices = [(BEGIN + _label_of(node.right) + END,)] * len(directives)
        if len(parts) != len(choices) + 1:
            continue
        for chosen in product(*choices):
            text = parts[0] + "".join(value + part for value, part in zip(chosen, parts[1:]))
            yield text.replace("\0", "%")


def _called(node: ast.Call, scope: _Scope) -> Iterator[str]:
    name = _name(node.func)
    if name.strip("_") in ("quote", "quoted") and node.args:
        for text in _values(node.args[0], scope):
            yield '"%s"' % text
        return
    if name in ("str", "min", "next") and node.args:
        yield from _values(node.args[0], scope)
        return
    found = _function(node.func, scope.module)
    if found is None or scope.depth > _DEPTH:
        yield BEGIN + _label_of(node) + END
        return
    module, function = found
    inside = _Scope(module, (), _arguments(function, node, scope), scope.depth + 1)
    returned = [
        text
        for statement, blocks in _statements(function.body)
        if isinstance(statement, ast.Return) and statement.value is not None
        for text in _values(statement.value, inside._replace(blocks=blocks))
    ]
    texts = [text for text in returned if words(text) >= _LEAST_LETTERS]
    yield from texts or [BEGIN + _label_of(node) + END]


# --- names -----------------------------------------------------------------------------------------------------


def _named(name: str, scope: _Scope) -> Iterator[str]:
    """What a variable, a parameter or a constant can be here."""
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
        if file.is_file() and name_there in _module(file).constants:
            yield from _values(_module(file).constants[name_there], _Scope(_module(file), depth=scope.depth + 1))
            return
    if name in module.constants and scope.depth <= _DEPTH:
        yield from _values(module.constants[name], _Scope(module, depth=scope.depth + 1))
        return
    yield BEGIN + _label(name) + END


def _assigned(name: str, scope: _Scope, level: int) -> tuple[list[str], bool]:
    """The values that reach this place from above, and whether the name surely has one of them."""
    found: list[str] = []
    for depth in range(level, len(scope.blocks)):
        statements, at = scope.blocks[depth]
        for number in range(at - 1, -1, -1):
            values, is_certain = _assigned_by(statements[number], name, scope.above(number, depth))
            found += values
            if is_certain:
                return found, True
    return found, False


def _assigned_by(statement: ast.stmt, name: str, scope: _Scope) -> tuple[list[str], bool]:
    for target, value in _bindings(statement):
        if target == name:
            return [_renamed(text, name) for text in _values(value, scope)], True
    if isinstance(statement, ast.AugAssign) and _name(statement.target) == name:
        whole = ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value)
        return list(_values(whole, scope)), True
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [], False
    blocks = list(_inner_blocks(statement))
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


def _assigned_in(name: str, scope: _Scope) -> tuple[list[str], bool]:
    """The same, of the innermost block alone."""
    found: list[str] = []
    statements, at = scope.blocks[0]
    for number in range(at - 1, -1, -1):
        values, is_certain = _assigned_by(statements[number], name, scope.above(number, 0))
        found += values
        if is_certain:
            return found, True
    return found, False


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _renamed(text: str, name: str) -> str:
    """What is nothing but a placeholder is called as the variable is."""
    match = PLACEHOLDER.fullmatch(text)
    if match is None or (name in _PLAIN_NAMES and match.group(1) not in _PLAIN_LABELS):
        return text
    return BEGIN + _label(name) + END


def _label(name: str) -> str:
    return _LABELS.get(name, name.strip("_").replace("_", " ").lower())


def _label_of(node: ast.expr) -> str:
    """What a placeholder is called."""
    if isinstance(node, ast.Name):
        return _label(node.id)
    if isinstance(node, ast.Attribute):
        owner = _name(node.value)
        return _label(owner if owner in ("error", "fault", "failure") else node.attr)
    if isinstance(node, ast.Call):
        return _label_of_call(node)
    inner: Mapping[type, str] = {ast.Subscript: "value", ast.Starred: "value", ast.BinOp: "left", ast.JoinedStr: ""}
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return _label_of(node.generators[0].iter)
    if isinstance(node, ast.BoolOp):
        return _label_of(node.values[0])
    attribute = inner.get(type(node), "")
    return _label_of(getattr(node, attribute)) if attribute else "value"


def _label_of_call(node: ast.Call) -> str:
    name = _name(node.func)
    if name in _LABELS:
        return _LABELS[name]
    is_method = isinstance(node.func, ast.Attribute)
    if node.args and (name in ("join", "map", "sorted", "tuple", "int", "set", "text_in") or not is_method):
        return _label_of(node.args[-1])
    return _label_of(node.func.value) if isinstance(node.func, ast.Attribute) and not node.args else _label(name)
