# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's command line: what its flags give, or the words with which it refuses them.

The kubelet reads its flags first of all. With a configuration file or drop-ins it reads them once more, over what it
decoded, so that they win; by then all defaults are set, and what a flag empties stays empty.
Source: cmd/kubelet/app (server.go, options/options.go); github.com/spf13/pflag (flag.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, Sequence

from ....errors import GoError
from ..checks.labels import labels_fault
from ..refusal import StartError, UnpredictableError
from . import table
from .refusals import (
    decoded_letters,
    doubtful_flag,
    help_again,
    invalid_value,
    refusal,
    unknown_flag,
    unknown_letter,
    without_value,
)
from .table import Flag, flag_of, flag_of_letter
from .values import bytes_of, quoted, read_value

if TYPE_CHECKING:
    from ..loading.load import GateCheck

_RUNNING = "failed to run Kubelet: "

# From Kubernetes 1.31 on no cloud provider is initialized at the start.
_NO_CLOUD_PROVIDERS = 31

SET, MERGE, EXTEND = "set", "merge", "extend"
_MODES = {table.GATES: MERGE, table.PATTERNS: EXTEND}


class Setting(NamedTuple):
    """What a flag does to the field `path` of the configuration: set it, merge a map into it, or extend a list."""

    flag: str
    path: tuple[str, ...]
    value: Any
    mode: str = SET


class Command(NamedTuple):
    """What a command line gives.

    `values` are the values of all given flags by name; `settings` those that set fields. `again` and `refusal` are
    what the flags give when they are read once more, over a configuration file or drop-ins. `doubts` are the flags of
    which it is not known whether the kubelet has them.
    """

    config: str
    config_dir: str
    gates: dict[str, bool]
    values: dict[str, Any]
    settings: tuple[Setting, ...]
    again: tuple[Setting, ...]
    refusal: StartError | None
    doubts: tuple[UnpredictableError, ...] = ()

    def reads_files(self) -> bool:
        """Whether there is a configuration file or a directory of drop-ins."""
        return bool(self.config or self.config_dir)


def read_command(arguments: Sequence[str], minor: int, is_assumed: bool = False) -> Command:
    """What the kubelet 1.`minor` makes of these arguments. Raises StartError, UnpredictableError.

    is_assumed: it may be another version, and have flags that this one does not have.
    """
    first = _Values(minor, False, is_assumed)
    first.read(arguments)
    _refuse_other_ends(first, minor)
    settings = first.settings()
    again, refusal = settings, None
    if first.is_different_again:
        second = _Values(minor, True, is_assumed)
        try:
            second.read(arguments)
            again = second.settings()
        except StartError as error:
            refusal = error
    values = {flag.name: value for flag, value in first.values.values()}
    return Command(
        values.get(table.CONFIG, ""),
        values.get(table.CONFIG_DIR, ""),
        dict(values.get(table.FEATURE_GATES, {})),
        values,
        settings,
        again,
        refusal,
        tuple(doubtful_flag(name) for name in values if flag_of(name, minor) is None),
    )


def _refuse_other_ends(first: _Values, minor: int) -> None:
    """The kubelet does not go on: a word that is no flag, --help, --version."""
    if first.word is not None:
        cause = "it is no flag, and the kubelet takes nothing else; a switch takes its value behind an equals sign"
        raise StartError("unknown command %s" % first.word, cause, "remove it, or write --switch=value", first.word)
    remedy = "remove the flag"
    if first.value_of(table.HELP):
        text = 'The kubelet is the primary "node agent" that runs on each'
        raise StartError(text, "with --help the kubelet prints its help and ends", remedy, "--help")
    if first.value_of(table.VERSION_FLAG) in ("true", "raw"):
        text = "Kubernetes v1.%d" % minor
        raise StartError(text, "with --version the kubelet prints its version and ends", remedy, "--version")


# --- words ------------------------------------------------------------------------------------------


class _Given(NamedTuple):
    """A flag that is given, with the text of its value, or, without a flag, another word."""

    flag: Flag | None
    text: str


def _words(arguments: Sequence[str], minor: int, again: bool, is_assumed: bool) -> Iterator[_Given]:
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            yield from (_Given(None, word) for word in rest)
        elif word.startswith("--"):
            yield _long(word, rest, minor, again, is_assumed)
        elif word.startswith("-") and len(word) > 1:
            yield from _short(word, rest, again)
        else:
            yield _Given(None, word)


def _long(word: str, rest: Iterator[str], minor: int, again: bool, is_assumed: bool) -> _Given:
    name, equals, value = word[2:].partition("=")
    if not name or name[0] == "-":
        raise refusal("bad flag syntax: %s" % word, "a flag is --name=value", "correct it", word, again)
    if again and name == table.HELP:
        raise help_again()
    flag = flag_of(name, minor)
    if flag is None and is_assumed:
        flag = table.FLAGS.get(name.replace("_", "-"))
    if flag is None:
        error = unknown_flag(name, minor, again)
        if not equals or isinstance(error, StartError):
            raise error
        flag = Flag(name, table.STRING)
    if equals:
        return _Given(flag, value)
    text = _implied(flag, again)
    if text is None:
        text = next(rest, None)
    if text is None:
        raise without_value("flag needs an argument: %s" % word, flag, again)
    return _Given(flag, text)


def _short(word: str, rest: Iterator[str], again: bool) -> Iterator[_Given]:
    """Letters in a row, each a flag; the first one that takes a value takes what follows."""
    # Go reads bytes. All known letters are ASCII.
    letters = bytes_of(word[1:]).decode("latin-1")
    if letters.startswith("test."):
        return
    at = 0
    while at < len(letters):
        letter, behind = letters[at], letters[at + 1 : at + 2]
        flag = flag_of_letter(letter)
        if flag is None or (again and flag.name == table.HELP):
            if flag is not None:
                raise help_again()
            raise unknown_letter(letters[at:], again)
        at += 1
        if behind == "=" and at + 1 < len(letters):
            yield _Given(flag, decoded_letters(letters[at + 1 :]))
            return
        text = _implied(flag, again)
        if text is not None:
            yield _Given(flag, text)
            continue
        text = decoded_letters(letters[at:]) if behind else next(rest, None)
        if text is None:
            raise without_value("flag needs an argument: '%s' in -%s" % (letter, letters[at - 1 :]), flag, again)
        yield _Given(flag, text)
        return


def _implied(flag: Flag, again: bool) -> str | None:
    """What a flag gives that has no value, None where it takes the next word."""
    # When the flags are read again, those of libraries are replaced by some that always take a value.
    return "true" if flag.kind in table.SWITCHES and not (again and flag.is_global) else None


# --- values -----------------------------------------------------------------------------------------


class _Values:
    """What the flags gave so far; the first word that is no flag; flags that an empty value left without a target."""

    def __init__(self, minor: int, again: bool, is_assumed: bool) -> None:
        self.minor, self.again, self.is_assumed = minor, again, is_assumed
        self.values: dict[str, tuple[Flag, Any]] = {}
        self.word: str | None = None
        self.loose: set[str] = set()
        self.is_different_again = False

    def read(self, arguments: Sequence[str]) -> None:
        """Take all of them. Raises StartError, UnpredictableError."""
        for flag, text in _words(arguments, self.minor, self.again, self.is_assumed):
            if flag is None:
                self.word = text if self.word is None else self.word
            elif not (self.again and flag.is_global):
                self.is_different_again |= flag.is_global or flag.name == table.HELP
                self._take(flag, text)

    def _take(self, flag: Flag, text: str) -> None:
        name, kind = flag.name, flag.kind
        if name == table.VERSION_FLAG and text.startswith("v"):
            raise UnpredictableError("a version that is given has to be that of the kubelet", "--version")
        try:
            if kind == table.MEMORY and name in self.loose:
                raise GoError("no target (nil pointer to *[]MemoryReservation")
            if not text and kind in (table.MEMORY, table.IP):
                # It detaches the flag from its field, which keeps its value.
                self.loose.add(name)
                return
            _flag, before = self.values.get(name, (None, None))
            value = read_value(kind, text, before, self.minor)
        except GoError as error:
            raise invalid_value(flag, text, str(error)) from error
        if name in self.loose:
            panic = "the string pointer passed into IPVar should not be nil"
            cause = "the flag was given with an empty value before"
            raise StartError(panic, cause, "remove the empty one", "--" + name, "panic: ")
        self.values[name] = (flag, value)

    def value_of(self, name: str) -> object:
        """The value of the flag of this name; None where it is not given."""
        return self.values[name][1] if name in self.values else None

    def settings(self) -> tuple[Setting, ...]:
        """Those of them that set fields."""
        return tuple(
            Setting(flag.name, flag.path, value, _MODES.get(flag.kind, SET))
            for flag, value in self.values.values()
            if flag.path
        )


def apply_flags(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    """The configuration with what the flags give. Raises StartError.

    `values` are the decoded fields, or the defaults where no file and no drop-in is read. What a flag sets to
    nothing is there and empty: it does not take its default.
    """
    if command.reads_files() and command.refusal is not None:
        raise command.refusal
    result = dict(values)
    for setting in command.again if command.reads_files() else command.settings:
        *parents, name = setting.path
        struct = result
        for parent in parents:
            inner = struct.get(parent)
            struct[parent] = dict(inner) if isinstance(inner, dict) else {}
            struct = struct[parent]
        struct[name] = _combined(struct.get(name), setting)
    return result


def _combined(before: object, setting: Setting) -> object:
    if setting.mode == MERGE:
        return {**(before if isinstance(before, dict) else {}), **setting.value}
    if setting.mode == EXTEND:
        return [*(before if isinstance(before, list) else ()), *setting.value]
    return setting.value


# --- checks of the flags alone ----------------------------------------------------------------------


def check_command(command: Command, minor: int, gate_check: GateCheck) -> None:
    """What the kubelet checks before it reads its file. Raises StartError.

    `gate_check` gives the refusal of the first gate that the kubelet does not take, None where it takes all.
    """
    found = gate_check(command.gates) if command.gates else None
    if found is not None:
        context = "failed to set feature gates from initial flags-based config: "
        raise StartError(found.text, found.cause, found.remedy, "--feature-gates", context)
    text = labels_fault(command.values.get(table.NODE_LABELS, {}), minor)
    if text:
        cause = "the kubelet may not give its node such a label"
        remedy = "remove it from --node-labels, or let the cluster's administrator set it"
        raise StartError(text, cause, remedy, "--node-labels", "failed to validate kubelet flags: ")


def check_run(command: Command, minor: int) -> None:
    """What the kubelet checks of its flags when it begins to run, after its configuration. Raises StartError."""
    values = command.values
    if values.get(table.EXIT_ON_LOCK) and not values.get(table.LOCK_FILE):
        text = "cannot exit on lock file contention: no lock file specified"
        cause = "--exit-on-lock-contention is of use with --lock-file only"
        raise StartError(text, cause, "give --lock-file, too", "--" + table.EXIT_ON_LOCK, _RUNNING)
    if minor < _NO_CLOUD_PROVIDERS and not _is_external(values):
        raise _cloud_refusal("unknown cloud provider %s" % quoted(values[table.CLOUD_PROVIDER]), _RUNNING)


def check_creation(command: Command) -> None:
    """What the kubelet checks of its flags after the container manager was made. Raises StartError."""
    if not _is_external(command.values):
        text = (
            "cloud provider %s was specified, but built-in cloud providers are disabled."
            " Please set --cloud-provider=external and migrate to an external cloud provider"
        ) % quoted(command.values[table.CLOUD_PROVIDER])
        raise _cloud_refusal(text, _RUNNING + "failed to create kubelet: ")


def _is_external(values: Mapping[str, object]) -> bool:
    return values.get(table.CLOUD_PROVIDER, "") in ("", "external")


def _cloud_refusal(text: str, context: str) -> StartError:
    cause = "no cloud provider is built in any more"
    return StartError(text, cause, "write --cloud-provider=external, or remove it", "--cloud-provider", context)
