# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The small changes of a program that its tests should see.

Changed are comparisons, conditions, arithmetic, constants, slices, the values of `return`, and statements that are
there for their effect; not what no test can see: annotations, docstrings, assertions, `__slots__`, decorators and what
is read by type checkers only. The words of messages are left out, too: texts with a space and formats.
"""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.BitXor: ("^", "|"),
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
_FOR_TYPES = frozenset(("TypeVar", "cast", "NewType"))


class Mutant(NamedTuple):
    """One change of a file: its source with the bytes from `start` to `end` replaced."""

    file: str
    line: int  # from 1
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """Return the line, or the lines as one, before and after."""
        first, end = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        before = source[first:end]
        after = source[first : self.start] + self.text.encode() + source[self.end : end]
        return " ".join(before.decode().split()), " ".join(after.decode().split())

    def is_valid(self, source: bytes) -> bool:
        """Return whether this gives another program. It takes some milliseconds."""
        try:
            changed = ast.parse(self.apply(source))
            compile(changed, self.file, "exec")
        except SyntaxError:
            return False
        return ast.dump(changed) != ast.dump(ast.parse(source))


def mutants(file: str, source: bytes) -> list[Mutant]:
    """Return all changes of a source, in the order of the file; some are not valid."""
    found = set(_Finder(file, source).changes(ast.parse(source)))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.text))


class _Finder:
    """Finds the changes of one source."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file = file
        self.source = source
        self.starts = [0]  # of each line
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def changes(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield those of a node and of all below it."""
        if _is_left_out(node):
            return
        for kind in type(node).__mro__:
            change = getattr(self, "_" + kind.__name__, None)
            if change is not None:
                yield from change(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "format_spec"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_docstring(node, child):
                    yield from self.changes(child)

    def _replace(self, node: ast.AST, *texts: str, last: ast.AST | None = None) -> Iterator[Mutant]:
        """Replace a node, or the nodes to the last one."""
        for text in texts:
            yield self._between(self._start(node), self._end(last or node), text)

    def _replace_operator(self, left: ast.AST, right: ast.AST, operator: str, *others: str) -> Iterator[Mutant]:
        start, end = self._end(left), self._start(right)
        start += max(self.source[start:end].find(operator.encode()), 0)
        for replacement in others:
            yield self._between(start, start + len(operator), replacement)

    def _between(self, start: int, end: int, text: str) -> Mutant:
        return Mutant(self.file, self.source.count(b"\n", 0, start) + 1, start, end, text)

    def _start(self, node: ast.AST) -> int:
        assert isinstance(node, (ast.expr, ast.stmt))
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.AST) -> int:
        assert isinstance(node, (ast.expr, ast.stmt))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    # --- by the names of nodes -------------------------------------------------------------------

    def _Compare(self, node: ast.Compare) -> Iterator[Mutant]:  # noqa: N802
        lefts = [node.left, *node.comparators]
        for left, operator, right in zip(lefts, node.ops, node.comparators):
            text, others = _COMPARISONS[type(operator)]
            yield from self._replace_operator(left, right, text, *others)

    def _BoolOp(self, node: ast.BoolOp) -> Iterator[Mutant]:  # noqa: N802
        text, replacement, neutral = ("and", "or", "True") if isinstance(node.op, ast.And) else ("or", "and", "False")
        for left, right in zip(node.values, node.values[1:]):
            yield from self._replace_operator(left, right, text, replacement)
        for value in node.values:
            # `or 0` without the 0 is hardly another program.
            if not isinstance(value, ast.Constant):
                yield from self._replace(value, neutral)

    def _UnaryOp(self, node: ast.UnaryOp) -> Iterator[Mutant]:  # noqa: N802
        if not isinstance(node.op, ast.UAdd):
            yield self._between(self._start(node), self._start(node.operand), "")

    def _BinOp(self, node: ast.BinOp) -> Iterator[Mutant]:  # noqa: N802
        if type(node.op) in _ARITHMETIC and not any(map(_is_no_number, (node.left, node.right))):
            text, replacement = _ARITHMETIC[type(node.op)]
            yield from self._replace_operator(node.left, node.right, text, replacement)

    def _AugAssign(self, node: ast.AugAssign) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node, "pass")
        if type(node.op) in _ARITHMETIC and not _is_no_number(node.value):
            text, replacement = _ARITHMETIC[type(node.op)]
            yield from self._replace_operator(node.target, node.value, text + "=", replacement + "=")

    def _Constant(self, node: ast.Constant) -> Iterator[Mutant]:  # noqa: N802
        value = node.value
        if isinstance(value, bool):
            yield from self._replace(node, repr(not value))
        elif isinstance(value, (int, float)):
            yield from self._replace(node, repr(value + 1))
        elif isinstance(value, str) and " " not in value:
            yield from self._replace(node, repr("XX" + value))
        elif isinstance(value, bytes):
            yield from self._replace(node, repr(b"XX" + value))

    def _Slice(self, node: ast.Slice) -> Iterator[Mutant]:  # noqa: N802
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                yield from self._replace(part, "")

    def _Call(self, node: ast.Call) -> Iterator[Mutant]:  # noqa: N802
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords:
            yield from self._replace(node.func, _FUNCTIONS[node.func.id])

    def _If(self, node: ast.If) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node.test, "True", "False")

    def _IfExp(self, node: ast.IfExp) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node.test, "True", "False")

    def _While(self, node: ast.While) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node.test, "False")

    def _comprehension(self, node: ast.comprehension) -> Iterator[Mutant]:
        for test in node.ifs:
            yield from self._replace(test, "True", "False")

    def _Return(self, node: ast.Return) -> Iterator[Mutant]:  # noqa: N802
        if node.value is not None:
            yield from self._replace(node.value, "None")

    def _Expr(self, node: ast.Expr) -> Iterator[Mutant]:  # noqa: N802
        if isinstance(node.value, ast.Call):
            yield from self._replace(node, "pass")

    def _Assign(self, node: ast.Assign) -> Iterator[Mutant]:  # noqa: N802
        # Without a name nothing would run, which is no fine test.
        if not any(isinstance(target, (ast.Name, ast.Tuple)) for target in node.targets):
            yield from self._replace(node, "pass")

    def _Raise(self, node: ast.Raise) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node, "pass")

    def _Delete(self, node: ast.Delete) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node, "pass")

    def _Break(self, node: ast.Break) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node, "continue")

    def _Continue(self, node: ast.Continue) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node, "break", "pass")

    def _ExceptHandler(self, node: ast.ExceptHandler) -> Iterator[Mutant]:  # noqa: N802
        yield from self._replace(node.body[0], "raise", last=node.body[-1])


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)):
        return True
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    if isinstance(node, ast.Assign):
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        return bool(names & {"__slots__", "__all__", "__metaclass__"})
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FOR_TYPES


def _is_docstring(parent: ast.AST, node: ast.AST) -> bool:
    return isinstance(parent, ast.Expr) and isinstance(node, ast.Constant)


def _is_no_number(node: ast.AST) -> bool:
    """Return a text or a list: other arithmetic would be no program that anybody could have written."""
    if isinstance(node, ast.BinOp):
        return _is_no_number(node.left) or _is_no_number(node.right)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return is_text or isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr))
