# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments of a module, and what is wrong with those that Ansible has refused, in the words of who set them. Pure."""

from __future__ import annotations

from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .errors import InputError

# How the caller calls an option of the module.
NameOf = Callable[[str], str]
Options = Mapping[str, Mapping[str, Any]]
# What Ansible makes values of a type with; it raises TypeError or ValueError for what is no such value.
Types = Mapping[str, Callable[[Any], Any]]

_LONGEST_VALUE = 60
_WANTED = {
    "bool": ("is neither true nor false", "write one of these"),
    "int": ("is not a whole number", "write one such as 2"),
    "float": ("is not a number", "write one such as 0.5"),
    "dict": ("is not a mapping", "write it as {name: value}"),
    "list": ("is not a list", "write it as [first, second]"),
}


class Arguments(NamedTuple):
    """Options of a module in the form of AnsibleModule, with the restrictions between them."""

    options: Mapping[str, object]
    mutually_exclusive: Sequence[Sequence[str]] = ()
    required_if: Sequence[Sequence[object]] = ()
    required_one_of: Sequence[Sequence[str]] = ()
    required_by: Mapping[str, Sequence[str]] = MappingProxyType({})


class _Rules(NamedTuple):
    """What there is between options, each in the form of AnsibleModule."""

    mutually_exclusive: Sequence[Sequence[str]]
    required_if: Sequence[Sequence[Any]]
    required_one_of: Sequence[Sequence[str]]
    required_by: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, between: Mapping[str, Any]) -> _Rules:
        exclusive, of_value, one_of, by = (between.get(name) for name in cls._fields)
        return cls(exclusive or (), of_value or (), one_of or (), by or {})


def nearest(word: object, words: Iterable[str]) -> str:
    """Return the one of the known words that was probably meant; empty where none is near."""
    found = get_close_matches(str(word), list(words), 1)
    return found[0] if found else ""


def instead(word: object, words: Iterable[str]) -> str:
    """Return what to take in place of a word that is none of the known: the nearest, or one of all."""
    listed = list(words)
    meant = nearest(word, listed)
    return "did you mean %s?" % meant if meant else "take one of %s" % _listed(listed)


def _listed(words: Iterable[object]) -> str:
    return ", ".join(map(str, words))


def refusal(
    options: Options, between: Mapping[str, Any], given: Mapping[str, Any], types: Types, name_of: NameOf = str
) -> InputError | None:
    """Return all that is wrong with what was given, by the options and what is between them, as one error; None for
    nothing.

    between: the restrictions by the names that AnsibleModule has for them. An option that is None is not given.
    """
    faults = list(_faults(options, _Rules.of(between), given, types, name_of))
    if len(faults) < 2:
        return faults[0] if faults else None
    return InputError("\n".join(map(str, faults)))


def _faults(
    options: Options, rules: _Rules, given: Mapping[str, Any], types: Types, name_of: NameOf
) -> Iterator[InputError]:
    there = {name: value for name, value in given.items() if value is not None}
    for name in there:
        if name not in options:
            yield InputError("there is no such option", name_of(str(name)), instead(name, sorted(options)))
    for name, form in options.items():
        if form.get("required") and name not in there:
            choices = form.get("choices")
            yield InputError("is missing", name_of(name), "take one of %s" % _listed(choices) if choices else "set it")
    for names in rules.mutually_exclusive:
        several = [name_of(name) for name in names if name in there]
        if len(several) > 1:
            yield InputError("%s exclude each other" % " and ".join(several), remedy="remove one")
    for name, form in options.items():
        if name in there:
            yield from _of_value(form, there[name], types, name_of(name))
    defaults = {name: form["default"] for name, form in options.items() if form.get("default") is not None}
    yield from _lacking(rules, {**defaults, **there}, name_of)


def _lacking(rules: _Rules, there: Mapping[str, Any], name_of: NameOf) -> Iterator[InputError]:
    """Yield what others take that were given."""
    for name, value, names, *any_of in rules.required_if:
        lacking = [name_of(needed) for needed in names if needed not in there]
        if there.get(name) == value and lacking and (not any(any_of) or len(lacking) == len(names)):
            joined = (" or " if any(any_of) else " and ").join(lacking)
            yield InputError("%s is %s, which takes %s" % (name_of(name), value, joined), remedy="set it")
    for names in rules.required_one_of:
        if not any(name in there for name in names):
            yield InputError("nothing of %s is given" % " or ".join(map(name_of, names)), remedy="set one")
    for name, names in rules.required_by.items():
        lacking = [name_of(needed) for needed in names if needed not in there]
        if name in there and lacking:
            yield InputError("%s takes %s" % (name_of(name), " and ".join(lacking)), remedy="set it")


def _of_value(form: Mapping[str, Any], value: Any, types: Types, name: str) -> Iterator[InputError]:
    kind = form.get("type", "str")
    try:
        value = types[kind](value)
    except (TypeError, ValueError):
        what, remedy = _WANTED.get(kind, ("is not of the type %s" % kind, "correct it"))
        yield InputError("%s %s" % (_shown(form, value), what), name, remedy)
        return
    choices = [str(choice) for choice in form.get("choices") or ()]
    if choices:
        for chosen in value if kind == "list" else [value]:
            if str(chosen) not in choices:
                yield InputError("%s is not possible" % _shown(form, chosen), name, instead(chosen, choices))
    elif kind == "list" and form.get("elements"):
        of_element = {**form, "type": form["elements"], "elements": None}
        for number, element in enumerate(value):
            yield from _of_value(of_element, element, types, "%s[%d]" % (name, number))
    elif kind == "dict" and form.get("options"):
        yield from _faults(form["options"], _Rules.of(form), value, types, lambda part: "%s.%s" % (name, part))


def _shown(form: Mapping[str, Any], value: Any) -> str:
    if form.get("no_log"):
        return "the value"
    # Not the name of a type of Ansible's own.
    text = repr(str(value)) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + " …"
