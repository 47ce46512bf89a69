# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's command line: what its flags give, or the words with which it refuses them.

The kubelet reads its flags first of all. With a configuration file or drop-ins it reads them once more, over what it
decoded, so that they win; by then all defaults are set, and what a flag empties stays empty.
Source: cmd/kubelet/app (server.go, options/options.go); github.com/spf13/pflag (flag.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from ..._base.errors import GoError
from ..._base.golang import read_integer
from .. import flags as table
from ..flags import (
    GO_SPACE,
    OUT_OF_RANGE,
    WRONG_SYNTAX,
    Flag,
    add_pair,
    bytes_of,
    flag_of,
    flag_of_letter,
    number_fault,
    put_over,
    quoted,
    read_digits,
    read_number,
    read_pair,
    read_pairs,
    read_switch,
    read_texts,
    read_thresholds,
    removed_in,
)
from .amount import quantity_fault, read_duration
from .findings import StartError, UnpredictableError
from .other_fields import labels_fault, read_taints

if TYPE_CHECKING:
    from .loading import GateCheck


# The values of flags, as the kubelet reads them.
#
# Each reader gets the text and what the flag gave before, None for nothing, and raises GoError with the words that the
# kubelet puts behind `invalid argument "..." for "--flag" flag: `. Those that others need, too, are in flags.py.
# Its source: github.com/spf13/pflag, k8s.io/component-base (cli/flag, logs/api/v1/pflags.go), pkg/util/flag, Go's
# strconv, time and flag.


# Kubernetes 1.36 corrected the spelling of these words.
_RESPELLED = 36


# --- numbers, lists and maps -----------------------------------------------------------------------


def read_unsigned(text: str) -> int:
    """Return a decimal number of 31 bits without a sign."""
    number = read_digits(text, 10, 1 << 31, "ParseUint", text) if text else None
    if number is None:
        raise number_fault("ParseUint", text, WRONG_SYNTAX)
    return number


def read_gates(text: str, before: dict[str, bool] | None) -> dict[str, bool]:
    """Return pairs of a gate and true or false."""
    found = before if before is not None else {}
    for part in text.split(","):
        if part:
            pair: dict[str, str] = {}
            add_pair(part, "=", "string=bool", pair)
            for name, value in pair.items():
                try:
                    found[name] = read_switch(value)
                except GoError as error:
                    raise GoError("invalid value of %s: %s, err: %s" % (name, value, error)) from error
    return found


def read_headers(text: str, before: dict[str, list[str]] | None) -> dict[str, list[str]]:
    """Return pairs of a header and a value of it."""
    found = before if before is not None else {}
    for part in text.split(","):
        if part:
            pair: dict[str, str] = {}
            add_pair(part, ":", "string:string", pair)
            for name, value in pair.items():
                found.setdefault(name, []).append(value)
    return found


def read_labels(text: str, before: dict[str, str] | None) -> dict[str, str]:
    """Return pairs; a key alone has the empty value."""
    found = before if before is not None else {}
    for part in text.split(","):
        if part:
            key, _sign, value = part.partition("=")
            found[key.strip(GO_SPACE)] = value.strip(GO_SPACE)
    return found


def read_patterns(text: str, before: list[dict[str, Any]] | None) -> list[dict[str, object]]:
    """Read log levels of files: pattern=N with commas between them."""
    found = before if before is not None else []
    for part in text.split(","):
        if part:
            pair = part.split("=")
            if len(pair) != 2 or not all(pair):
                raise GoError("%s does not have the pattern=N format" % quoted(part))
            try:
                found.append({"filePattern": pair[0], "verbosity": read_unsigned(pair[1])})
            except GoError as error:
                raise GoError("parsing verbosity in %s: %s" % (quoted(part), error)) from error
    return found


def read_memory(text: str, before: list[dict[str, Any]] | None, minor: int) -> list[dict[str, object]]:
    """Read memory of NUMA nodes: node:type=quantity,type=quantity with semicolons between them."""
    found = before if before is not None else []
    for part in text.split(";"):
        parts = part.split(":")
        if len(parts) != 2:
            form = "numaNodeID:type=quantity[,type=quantity...]"
            raise GoError("the reserved memory has incorrect format, expected %s, got %s" % (form, part))
        found.append({"numaNode": _read_node(parts[0], minor), "limits": _read_limits(parts[1], minor)})
    return found


def _read_node(text: str, minor: int) -> int:
    try:
        number = read_integer(text)
    except GoError as error:
        expected = "expected" if minor >= _RESPELLED else "exptected"
        raise GoError("failed to convert the NUMA node ID, %s integer, got %s" % (expected, text)) from error
    # Go keeps the lower 32 bits.
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _read_limits(text: str, minor: int) -> dict[str, str]:
    limits = {}
    for part in text.split(","):
        limit = part.split("=")
        if len(limit) != 2:
            expected = "quantity" if minor >= _RESPELLED else "quantatity"
            raise GoError("the reserved limit has incorrect value, expected type=%s, got %s" % (expected, part))
        name, amount = limit
        if name != "memory" and not name.startswith("hugepages-"):
            raise GoError("memory type conversion error, unknown type: %s" % quoted(name))
        if quantity_fault(amount):
            if minor >= _RESPELLED:
                raise GoError("failed to parse the quantity: %s" % amount)
            raise GoError("failed to parse the quantatity, expected quantatity, got %s" % amount)
        limits[name] = amount
    return limits


# --- the rest ---------------------------------------------------------------------------------------


def read_address(text: str) -> str:
    """Return an IP address."""
    if not _is_address(text):
        raise GoError("%s is not a valid IP address" % quoted(text))
    return text


def _is_address(text: str) -> bool:
    """Return whether it is one for Go: zeros may lead, a zone may not follow."""
    first = next((character for character in text if character in ".:"), "")
    return _is_ipv4(text) if first == "." else first == ":" and _is_ipv6(text)


def _is_ipv4(text: str) -> bool:
    parts = text.split(".", 4)
    return len(parts) == 4 and all(
        _is_group(part, "0123456789", 3) and int(part.lstrip("0") or "0") <= 0xFF for part in parts
    )


def _is_ipv6(text: str) -> bool:
    head, gap, tail = text.partition("::")
    groups = head.split(":", 8) if head else []
    behind = tail.split(":", 8) if tail else []
    last = (behind if gap else groups)[-1:]
    dotted = bool(last) and "." in last[0]
    words = groups + behind
    if dotted and not _is_ipv4(words.pop()):
        return False
    if not all(_is_group(word, "0123456789abcdefABCDEF", 4) for word in words):
        return False
    size = len(words) + 2 * dotted
    return size < 8 if gap else size == 8


def _is_group(text: str, digits: str, most: int) -> bool:
    return bool(text) and not text.strip(digits) and len(text.lstrip("0")) <= most


def _read_quantity(text: str) -> str:
    fault = quantity_fault(text)
    if fault:
        raise GoError(fault)
    return text


def _read_version(text: str) -> str:
    return text if text == "raw" else "true" if read_switch(text) else "false"


def _read_of_go(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader with Go's own words: its package says only whether a value is out of range."""

    def reader(text: str) -> object:
        try:
            return read(text)
        except GoError as error:
            # Of durations, it does not even say that.
            out_of_range = str(error).endswith(OUT_OF_RANGE)
            raise GoError(OUT_OF_RANGE if out_of_range else "parse error") from error

    return reader


# What the last one gives.
_LAST: dict[str, Callable[[str], Any]] = {
    table.STRING: str,
    table.BOOL: read_switch,
    table.INT32: lambda text: read_number(text, 32),
    table.INT64: lambda text: read_number(text, 64),
    table.DURATION: read_duration,
    table.IP: read_address,
    table.LEVEL: read_unsigned,
    table.QUANTITY: _read_quantity,
    table.VERSION: _read_version,
    table.GO_BOOL: _read_of_go(read_switch),
    table.GO_INT: _read_of_go(lambda text: read_number(text, 64)),
    table.GO_DURATION: _read_of_go(read_duration),
}
# What all of them give.
_ALL: dict[str, Callable[[str, Any], Any]] = {
    table.STRINGS: read_texts,
    table.PAIRS: read_pairs,
    table.PAIR: read_pair,
    table.THRESHOLDS: read_thresholds,
    table.LABELS: read_labels,
    table.GATES: read_gates,
    table.HEADERS: read_headers,
    table.PATTERNS: read_patterns,
}


def read_value(kind: str, text: str, before: Any, minor: int) -> object:
    """Return the value of a flag of this kind, which gave `before` so far. It may be changed in place. Raises
    GoError."""
    if kind == table.MEMORY:
        return read_memory(text, before, minor)
    if kind == table.TAINTS:
        return read_taints(text, minor)
    return _LAST[kind](text) if kind in _LAST else _ALL[kind](text, before)


# The words with which a kubelet refuses a flag.
#
# Its source: cmd/kubelet/app (server.go), github.com/spf13/pflag (flag.go, errors.go).


PARSING = "failed to parse kubelet flag: "

_SWITCH, _NUMBER, _DURATION = "true or false", "a whole number", "a duration, as 10s, 1m30s or 500ms"
_FORMS = {
    table.BOOL: _SWITCH,
    table.GO_BOOL: _SWITCH,
    table.VERSION: _SWITCH,
    table.INT32: _NUMBER,
    table.INT64: _NUMBER,
    table.GO_INT: _NUMBER,
    table.LEVEL: _NUMBER,
    table.DURATION: _DURATION,
    table.GO_DURATION: _DURATION,
    table.IP: "an IP address",
    table.STRINGS: "texts with commas between them",
    table.PAIRS: "key=value, with commas between several",
    table.PAIR: "one key=value, and is given several times for several",
    table.THRESHOLDS: "signal<threshold, with commas between several",
    table.GATES: "Gate=true or Gate=false, with commas between several",
    table.HEADERS: "header:value, with commas between several",
    table.PATTERNS: "pattern=level, with commas between several",
    table.MEMORY: "node:memory=quantity, with semicolons between several",
    table.TAINTS: "key=value:effect, with commas between several",
    table.QUANTITY: "a quantity, as 512 or 4Mi",
}


def decoded_letters(letters: str) -> str:
    return letters.encode("latin-1").decode("utf-8", "surrogateescape")


def refusal(text: str, cause: str, remedy: str, where: str, again: bool) -> StartError:
    return StartError(text, cause, remedy, where, "" if again else PARSING)


def unknown_flag(name: str, minor: int, again: bool) -> StartError | UnpredictableError:
    removed = removed_in(name, minor)
    flag = table.FLAGS.get(name.lower().replace("_", "-"))
    if removed is not None:
        cause, remedy = "Kubernetes 1.%d removed this flag" % removed, "remove it"
    elif flag is not None and minor < flag.since:
        cause = "the flag exists from Kubernetes 1.%d on, and this is 1.%d" % (flag.since, minor)
        remedy = "remove it, or upgrade"
    elif flag is not None and flag.until > minor:
        cause = "the kubelet has no such flag; upper and lower case count"
        remedy = "write --%s" % flag.name
    elif minor < table.COMPLETE_SINCE:
        return doubtful_flag(name)
    else:
        cause, remedy = "the kubelet 1.%d has no such flag" % minor, "check how it is spelled, or remove it"
    return refusal("unknown flag: --%s" % name, cause, remedy, "--" + name, again)


def doubtful_flag(name: str) -> UnpredictableError:
    return UnpredictableError("it is not known whether this kubelet has the flag --%s" % name, "--" + name)


def unknown_letter(letters: str, again: bool) -> StartError:
    # Go prints a byte as the character of that number.
    shown = "\\'" if letters[0] == "'" else '"' if letters[0] == '"' else quoted(letters[0])[1:-1]
    word = "-" + decoded_letters(letters)
    cause = "behind one dash stand flags of one letter"
    remedy = "write two dashes before the name of a flag"
    return refusal("unknown shorthand flag: '%s' in %s" % (shown, word), cause, remedy, word, again)


def without_value(text: str, flag: Flag, again: bool) -> StartError:
    return refusal(text, "the flag takes a value, and none follows", "give it a value", "--" + flag.name, again)


def invalid_value(flag: Flag, text: str, fault: str) -> StartError:
    shown = "-%s, --%s" % (flag.shorthand, flag.name) if flag.shorthand else "--" + flag.name
    said = 'invalid argument %s for "%s" flag: %s' % (quoted(text), shown, fault)
    form = _FORMS.get(flag.kind, "a value of another form")
    return refusal(said, "the flag takes %s" % form, "correct its value", "--" + flag.name, False)


def help_again() -> StartError:
    cause = "when the kubelet reads its flags over its configuration, it does not have the flag --help"
    return StartError("pflag: help requested", cause, "remove the flag", "--help")


_RUNNING = "failed to run Kubelet: "

# From Kubernetes 1.31 on no cloud provider is initialized at the start.
_NO_CLOUD_PROVIDERS = 31
# The minor version from which on a cloud provider is not built in, or switched off. Source: cmd/kubelet/app/plugins.go,
# pkg/cloudprovider/providers and the gate DisableCloudProviders.
_NOT_BUILT_IN_SINCE = {"aws": 27, "azure": 29, "gce": 29, "openstack": 26, "vsphere": 29}


class FieldChange(NamedTuple):
    """What a flag of this kind gives the field `path` of the configuration."""

    path: tuple[str, ...]
    kind: str
    value: Any


class CommandLine(NamedTuple):
    """What a command line gives.

    `values` are the values of all given flags by name; `settings` those that set fields. `again` and `refusal` are
    what the flags give when they are read once more, over a configuration file or drop-ins. `doubts` are the flags of
    which it is not known whether the kubelet has them.
    """

    config: str
    config_dir: str
    gates: dict[str, bool]
    values: dict[str, Any]
    settings: tuple[FieldChange, ...]
    again: tuple[FieldChange, ...]
    refusal: StartError | None
    doubts: tuple[UnpredictableError, ...] = ()

    def reads_files(self) -> bool:
        """Return whether there is a configuration file or a directory of drop-ins."""
        return bool(self.config or self.config_dir)


def read_command(arguments: Sequence[str], minor: int, is_assumed: bool = False) -> CommandLine:
    """Return what the kubelet 1.`minor` makes of these arguments. Raises StartError, UnpredictableError.

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
    return CommandLine(
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
    """Refuse that with which the kubelet does not go on: a word that is no flag, --help, --version."""
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
    """Yield the flags of letters in a row; the first one that takes a value takes what follows."""
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
    """Return what a flag gives that has no value, None where it takes the next word."""
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
        """Return the value of the flag of this name; None where it is not given."""
        return self.values[name][1] if name in self.values else None

    def settings(self) -> tuple[FieldChange, ...]:
        """Return those of them that set fields."""
        return tuple(FieldChange(flag.path, flag.kind, value) for flag, value in self.values.values() if flag.path)


def apply_flags(command: CommandLine, values: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with what the flags give. Raises StartError.

    `values` are the decoded fields, or the defaults where no file and no drop-in is read. What a flag sets to
    nothing is there and empty: it does not take its default.
    """
    if command.reads_files() and command.refusal is not None:
        raise command.refusal
    for change in command.again if command.reads_files() else command.settings:
        values = put_over(values, *change)
    return values


# --- checks of the flags alone ----------------------------------------------------------------------


def check_command(command: CommandLine, minor: int, gate_check: GateCheck) -> None:
    """Check what the kubelet checks before it reads its file. Raises StartError.

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


def check_run(command: CommandLine, minor: int) -> None:
    """Check what the kubelet checks of its flags when it begins to run, after its configuration. Raises StartError."""
    values = command.values
    if values.get(table.EXIT_ON_LOCK) and not values.get(table.LOCK_FILE):
        text = "cannot exit on lock file contention: no lock file specified"
        cause = "--exit-on-lock-contention is of use with --lock-file only"
        raise StartError(text, cause, "give --lock-file, too", "--" + table.EXIT_ON_LOCK, _RUNNING)
    if minor < _NO_CLOUD_PROVIDERS and not _has_provider(values, minor):
        raise _cloud_refusal("unknown cloud provider %s" % quoted(values[table.CLOUD_PROVIDER]), _RUNNING)


def check_creation(command: CommandLine, minor: int) -> None:
    """Check what the kubelet checks of its flags after the container manager was made. Raises StartError."""
    if not _has_provider(command.values, minor):
        text = (
            "cloud provider %s was specified, but built-in cloud providers are disabled."
            " Please set --cloud-provider=external and migrate to an external cloud provider"
        ) % quoted(command.values[table.CLOUD_PROVIDER])
        raise _cloud_refusal(text, _RUNNING + "failed to create kubelet: ")


def _has_provider(values: Mapping[str, object], minor: int) -> bool:
    """Return whether the cloud provider is none, one outside of the kubelet, or one that this kubelet has."""
    name = values.get(table.CLOUD_PROVIDER, "")
    return name in ("", "external") or minor < _NOT_BUILT_IN_SINCE.get(str(name), 0)


def _cloud_refusal(text: str, context: str) -> StartError:
    cause = "no cloud provider is built in any more"
    return StartError(text, cause, "write --cloud-provider=external, or remove it", "--cloud-provider", context)
