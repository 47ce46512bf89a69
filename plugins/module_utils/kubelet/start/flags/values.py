# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of flags, as the kubelet reads them.

Each reader gets the text and what the flag gave before, None for nothing, and raises GoError with the words that the
kubelet puts behind `invalid argument "..." for "--flag" flag: `.
Source: github.com/spf13/pflag; k8s.io/component-base (cli/flag, logs/api/v1/pflags.go); pkg/util/flag; Go's strconv,
time and flag.
"""

from __future__ import annotations

from typing import Any, Callable

from ....errors import GoError
from ....golang import quote, read_integer
from ....policy.options import BOOLEANS
from ..checks.labels import read_taints
from ..loading.go_values import parse_duration, quantity_fault
from . import table

_SYNTAX, _RANGE = "invalid syntax", "value out of range"

# What Go's strings.TrimSpace cuts off.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

# Kubernetes 1.36 corrected the spelling of these words.
_RESPELLED = 36


def quoted(text: str) -> str:
    """The text as %q prints it, also where bytes in it are no UTF-8."""
    if text.isascii():
        return quote(text)
    return '"%s"' % "".join(_byte(character) or quote(character)[1:-1] for character in text)


def _byte(character: str) -> str:
    """A byte that is no UTF-8, which Python keeps as a surrogate."""
    return "\\x%02x" % (ord(character) - 0xDC00) if "\udc80" <= character <= "\udcff" else ""


def bytes_of(text: str) -> bytes:
    """The bytes that Python made this text of; a text of JSON may have surrogates that are made of none."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# --- numbers and durations --------------------------------------------------------------------------


def read_number(text: str, bits: int) -> int:
    """A whole number with its sign, decimal or as 0x1f, 0o17, 017, 0b11, 1_000."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = _magnitude(digits, bits, "ParseInt", text)
    number = -number if text[0] == "-" else number
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _number_fault("ParseInt", text, _RANGE)
    return number


def _magnitude(digits: str, bits: int, function: str, text: str) -> int:
    base, rest = 10, digits
    if digits[:1] == "0":
        base = {"b": 2, "o": 8, "x": 16}.get(digits[1:2].lower(), 0) if len(digits) >= 3 else 0
        rest = digits[2:] if base else digits[1:]
        base = base or 8
    number = _digits(rest, base, 1 << bits, function, text) if digits else None
    if number is None or ("_" in rest and not _is_grouped(digits)):
        raise _number_fault(function, text, _SYNTAX)
    return number


def _digits(digits: str, base: int, limit: int, function: str, text: str) -> int | None:
    """The number, None for another character. From the left: behind a number that is too large, nothing is read."""
    number = 0
    for digit in digits:
        if digit == "_" and function == "ParseInt":
            continue
        value = int(digit, 36) if digit.isascii() and digit.isalnum() else base
        if value >= base:
            return None
        number = number * base + value
        if number >= limit:
            raise _number_fault(function, text, _RANGE)
    return number


def _is_grouped(digits: str) -> bool:
    """Whether each underscore stands between digits, or between the prefix of the base and one."""
    last = "_"
    for at, character in enumerate(digits):
        if character == "_" and last == "_":
            return False
        last = "0" if at == 1 and digits[0] == "0" and character in "bBoOxX" else character
    return last != "_"


def read_unsigned(text: str) -> int:
    """A decimal number of 31 bits without a sign."""
    number = _digits(text, 10, 1 << 31, "ParseUint", text) if text else None
    if number is None:
        raise _number_fault("ParseUint", text, _SYNTAX)
    return number


def _number_fault(function: str, text: str, what: str) -> GoError:
    return GoError("strconv.%s: parsing %s: %s" % (function, quoted(text), what))


def read_switch(text: str) -> bool:
    """true or false, in the spellings that Go takes."""
    if text not in BOOLEANS:
        raise _number_fault("ParseBool", text, _SYNTAX)
    return BOOLEANS[text]


def read_duration(text: str) -> int:
    """Its nanoseconds."""
    duration, fault = parse_duration(text)
    if fault:
        raise GoError(fault)
    return duration


# --- lists and maps ---------------------------------------------------------------------------------


def read_texts(text: str, before: list[str] | None) -> list[str]:
    """One more record of CSV."""
    found = before if before is not None else []
    if '"' not in text and "\n" not in text and "\r" not in text:
        found.extend(text.split(",") if text else ())
    else:
        from .csv_record import read_record

        found.extend(read_record(bytes_of(text)))
    return found


def _reader_of_pairs(sign: str, kinds: str) -> Callable[[str, Any], dict[str, str]]:
    def read(text: str, before: dict[str, str] | None) -> dict[str, str]:
        found = before if before is not None else {}
        for part in text.split(","):
            if part:
                _add_pair(part, sign, kinds, found)
        return found

    return read


def _add_pair(part: str, sign: str, kinds: str, found: dict[str, str]) -> None:
    key, separator, value = part.partition(sign)
    if not separator:
        raise GoError("malformed pair, expect %s" % kinds)
    found[key.strip(_SPACE)] = value.strip(_SPACE)


def read_pair(text: str, before: dict[str, str] | None) -> dict[str, str]:
    """One pair; a comma belongs to its value."""
    found = before if before is not None else {}
    _add_pair(text, "=", "string=string", found)
    return found


read_pairs = _reader_of_pairs("=", "string=string")
read_thresholds = _reader_of_pairs("<", "string<string")


def read_gates(text: str, before: dict[str, bool] | None) -> dict[str, bool]:
    """Pairs of a gate and true or false."""
    found = before if before is not None else {}
    for part in text.split(","):
        if part:
            pair: dict[str, str] = {}
            _add_pair(part, "=", "string=bool", pair)
            for name, value in pair.items():
                try:
                    found[name] = read_switch(value)
                except GoError as error:
                    raise GoError("invalid value of %s: %s, err: %s" % (name, value, error)) from error
    return found


def read_headers(text: str, before: dict[str, list[str]] | None) -> dict[str, list[str]]:
    """Pairs of a header and a value of it."""
    found = before if before is not None else {}
    for part in text.split(","):
        if part:
            pair: dict[str, str] = {}
            _add_pair(part, ":", "string:string", pair)
            for name, value in pair.items():
                found.setdefault(name, []).append(value)
    return found


def read_labels(text: str, before: dict[str, str] | None) -> dict[str, str]:
    """Pairs; a key alone has the empty value."""
    found = before if before is not None else {}
    for part in text.split(","):
        if part:
            key, _sign, value = part.partition("=")
            found[key.strip(_SPACE)] = value.strip(_SPACE)
    return found


def read_patterns(text: str, before: list[dict[str, Any]] | None) -> list[dict[str, object]]:
    """Log levels of files: pattern=N with commas between them."""
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
    """Memory of NUMA nodes: node:type=quantity,type=quantity with semicolons between them."""
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
    """An IP address."""
    if not _is_address(text):
        raise GoError("%s is not a valid IP address" % quoted(text))
    return text


def _is_address(text: str) -> bool:
    """Whether it is one for Go: zeros may lead, a zone may not follow."""
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
    """Go's own package says only whether a value is out of range."""

    def reader(text: str) -> object:
        try:
            return read(text)
        except GoError as error:
            # Of durations, it does not even say that.
            out_of_range = str(error).endswith(_RANGE)
            raise GoError(_RANGE if out_of_range else "parse error") from error

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
    """The value of a flag of this kind, which gave `before` so far. It may be changed in place. Raises GoError."""
    if kind == table.MEMORY:
        return read_memory(text, before, minor)
    if kind == table.TAINTS:
        return read_taints(text, minor)
    return _LAST[kind](text) if kind in _LAST else _ALL[kind](text, before)
