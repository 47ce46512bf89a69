# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be wrong: an error has a kind for programs, and a message for people that says where and what to do."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, TypeVar

# How the caller names the options of a module, where that is not as the module does.
_OPTION_NAMES: dict[str, str] = {}

# The kind of a NodeError where reading or writing takes more rights.
PERMISSION = "permission"
# That of one where a file is longer than any that is meant to be there.
TOO_LONG = "too_long"

# What reading data of a wrong shape raises, such as JSON that somebody else has written.
MALFORMED = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)

_Error = TypeVar("_Error", bound="CPUManagerError")


class CPUManagerError(Exception):
    """The base of all errors here. Its message is "WHERE: WHAT; REMEDY", without the parts that are empty.

    where: the file, setting or option that it is about. remedy: what to do about it. kind: what programs decide by,
    where that of the class is not precise enough.
    """

    kind = "error"

    def __init__(self, what: str, where: str = "", remedy: str = "", kind: str = "") -> None:
        # What is wrong, without the remedy.
        self.problem = "%s: %s" % (where, what) if where else what
        super().__init__("%s; %s" % (self.problem, remedy) if remedy else self.problem)
        self.what, self.where, self.remedy = what, where, remedy
        # What a module returns beside the message.
        self.result: Mapping[str, Any] = {}
        if kind:
            self.kind = kind

    def returning(self: _Error, result: Mapping[str, Any]) -> _Error:
        """Return this error, with the result of a module that has more to answer."""
        self.result = result
        return self

    def within(self: _Error, where: str) -> _Error:
        """Return this error, about a part of `where`."""
        return self._again(self.problem, where)

    def adding(self: _Error, more: str) -> _Error:
        """Return this error, with more about what is wrong."""
        return self._again("%s; %s" % (self.what, more), self.where)

    def _again(self: _Error, what: str, where: str) -> _Error:
        again = type(self).__new__(type(self))
        again.__dict__.update(self.__dict__)
        CPUManagerError.__init__(again, what, where, self.remedy)
        return again

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it in `failure`."""
        return {"kind": self.kind, "where": self.where, "remedy": self.remedy}

    def to_row(self) -> dict[str, Any]:
        """Return plain data with what is wrong, as a row of a list of reasons."""
        return {**self.to_dict(), "text": self.what}


class InputError(CPUManagerError, ValueError):
    """What the caller gave is wrong: a text, a count, a combination of options."""

    kind = "input"


class KubeletError(InputError):
    """The kubelet itself refuses this. `text` is what it says; the message adds what to do."""

    kind = "kubelet"

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text, remedy=remedy)
        self.text = text


class NodeError(CPUManagerError):
    """A file of the node is missing, unreadable or damaged. The message names the file."""

    kind = "node"


class ConfigurationError(NodeError):
    """The file is no KubeletConfiguration that can be read for sure. The message names the file and the place."""


class RefusedError(CPUManagerError):
    """What was requested would harm the node. The message says how, and what to do instead."""

    kind = "refused"


class GoError(ValueError):
    """Go does not read a text; the message is its own."""


class BeyondError(GoError):
    """Go reads a text, and its CPUs have higher numbers than are possible."""


class Note(str):
    """What is no error and yet has to be said: a text, and the id of the check that it belongs to.

    Source of the ids: CHECKS in plugins/plugin_utils/report/checks.py.
    """

    __slots__ = ("check",)
    check: str

    def __new__(cls, check: str, text: str) -> Note:
        """Return `text`, as a finding of the check `check`."""
        note = super().__new__(cls, text)
        note.check = check
        return note


def noted(notes: Iterable[str]) -> dict[str, list[str]]:
    """Return notes as modules return them: the texts, and beside each the id of its check, empty for one without."""
    texts = list(notes)
    return {"notes": [str(text) for text in texts], "note_checks": [getattr(text, "check", "") for text in texts]}


def call_options(names: Mapping[str, str]) -> None:
    """Have messages use these names for options from now on, and no others: {the module's name: the caller's name}."""
    _OPTION_NAMES.clear()
    call_more_options(names)


def call_more_options(names: Mapping[str, str]) -> None:
    """Have messages use these names for options from now on, too."""
    _OPTION_NAMES.update(names)


def option(name: str) -> str:
    """Return what a message calls an option of a module: the name under which the caller set it."""
    return _OPTION_NAMES.get(name, name)
