# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values that a kubelet's validation works with: those that it is given, and defaults for the others.

Source: pkg/kubelet/apis/config/v1beta1 (defaults.go).
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite, isnan
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ..._base.golang import quote
from ..._base.startup import Pattern
from .decode import DEFAULTS, FAIL_CGROUP_V1_SINCE, KUBELET_CONFIGURATION, LIST, STRUCTS
from .findings import Finding, refused

# What Go says of texts that are no endpoint, or no pattern of images.
#
# Its source: Go's net/url (url.go), pkg/kubelet/images/pullmanager (image_pull_policies.go);
# github.com/distribution/reference.


# --- endpoints -----------------------------------------------------------------------------------------------

_CONTROL = Pattern("[\\x00-\\x1f\\x7f]")
_SCHEME = Pattern("([A-Za-z][A-Za-z0-9+.-]*):")
_PORT = Pattern("(?::[0-9]*)?")
_ESCAPE = Pattern("%(?![0-9A-Fa-f]{2})(?s:.{0,2})")
_HOST_ESCAPE = Pattern("%(?:(?![0-9A-Fa-f]{2})(?s:.{0,2})|(?!25)[0-7].)")
_HOST_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!$&'()*+,;=:[]<>\"-_.~%")
_NOT_IN_USER = Pattern("[^A-Za-z0-9._:~!$&'()*+,;=%@-]")


def url_scheme(url: str) -> tuple[str, str]:
    """Return (the scheme of a URL with "//", ""), or ("", what url.Parse says of it)."""
    shown, mark, fragment = url.partition("#")
    scheme, fault = _parsed(shown)
    if not fault and mark:
        fault, shown = _escape_fault(fragment), url
    return ("", "parse %s: %s" % (quote(shown), fault)) if fault else (scheme, "")


def _parsed(url: str) -> tuple[str, str]:
    if _CONTROL.search(url):
        return "", "net/url: invalid control character in URL"
    if url.startswith(":"):
        return "", "missing protocol scheme"
    found = _SCHEME.match(url)
    scheme = found.group(1).lower() if found else ""
    rest = (url[found.end() :] if found else url).partition("?")[0]
    if not rest.startswith("/"):
        # With a scheme, the rest is taken as it is.
        colon = not scheme and ":" in rest.partition("/")[0]
        fault = "first path segment in URL cannot contain colon" if colon else ""
        return scheme, fault or ("" if scheme else _escape_fault(rest))
    fault = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        fault, rest = _authority_fault(authority), slash + path
    return scheme, fault or _escape_fault(rest)


def _authority_fault(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    fault = _host_fault(host)
    if fault or not at:
        return fault
    return "net/url: invalid userinfo" if _NOT_IN_USER.search(user) else _escape_fault(user)


def _host_fault(host: str) -> str:
    colon_port = host[host.rfind(":") :] if ":" in host else ""
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        colon_port = host[end + 1 :]
    if not _PORT.fullmatch(colon_port):
        return "invalid port %s after host" % quote(colon_port)
    escape = _HOST_ESCAPE.search(host)
    wrong = next((at for at, letter in enumerate(host) if letter < "\x80" and letter not in _HOST_CHARACTERS), None)
    if escape and (wrong is None or escape.start() < wrong):
        return "invalid URL escape %s" % quote(escape.group())
    return "" if wrong is None else "invalid character %s in host name" % quote(host[wrong])


def _escape_fault(text: str) -> str:
    escape = _ESCAPE.search(text)
    return "invalid URL escape %s" % quote(escape.group()) if escape else ""


# --- patterns of images ----------------------------------------------------------------------------------------

_IDENTIFIER = Pattern("[a-f0-9]{64}")
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = r"(?:%s(?:\.%s)*|\[[a-fA-F0-9:]+\])" % (_LABEL, _LABEL)
_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = Pattern(
    r"(%s(?::[0-9]+)?/(%s(?:/%s)*))"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?" % (_DOMAIN, _COMPONENT, _COMPONENT)
)
_LONGEST_NAME = 255
_DEFAULT_DOMAIN, _LEGACY_DOMAIN, _OFFICIAL = "docker.io", "index.docker.io", "library/"
# Longer texts are no names of images, and need not be matched.
_LONGEST_REFERENCE = 4096


def image_pattern_fault(pattern: str) -> str:
    """Return what the kubelet says of an entry of preloadedImagesVerificationAllowlist; "" where it is right."""
    if pattern != pattern.strip():
        return "leading/trailing spaces are not allowed: %s" % pattern
    is_prefix = pattern.endswith("/*")
    name = pattern[:-1] if is_prefix else pattern
    if not name:
        return "the supplied pattern is too short: %s" % pattern
    if "*" in name:
        return "not a valid wildcard pattern, only patterns ending with '/*' are allowed: %s" % pattern
    if is_prefix:
        return "at least registry hostname is required" if len(name) == 1 else ""
    fault, found = _image_name(name)
    if fault:
        return "failed to parse as an image name: %s" % fault
    return "" if found == name else "neither tag nor digest is accepted in an image reference: %s" % pattern


def _image_name(text: str) -> tuple[str, str]:
    """Return ("", the full name of an image without its tag), or (what is wrong with it, "")."""
    if _IDENTIFIER.fullmatch(text):
        return "invalid repository name (%s), cannot specify 64-byte hexadecimal strings" % text, ""
    domain, slash, rest = text.partition("/")
    if not slash or not (set(domain) & set(".:") or domain == "localhost" or domain.lower() != domain):
        domain, rest = _DEFAULT_DOMAIN, text
    if domain == _LEGACY_DOMAIN:
        domain = _DEFAULT_DOMAIN
    if domain == _DEFAULT_DOMAIN and "/" not in rest:
        rest = _OFFICIAL + rest
    name = rest.partition(":")[0]
    if name.lower() != name:
        return "invalid reference format: repository name (%s) must be lowercase" % name, ""
    full = "%s/%s" % (domain, rest)
    found = _REFERENCE.fullmatch(full) if len(full) <= _LONGEST_REFERENCE else None
    if not found:
        return "invalid reference format", ""
    if len(found.group(2)) > _LONGEST_NAME:
        return "repository name must not be more than 255 characters", ""
    return "", found.group(1)


# --- numbers ---------------------------------------------------------------------------------------------------


def float_text(number: float) -> str:
    """Return a number as %v prints a float64."""
    try:
        value = float(number)
    except OverflowError:
        value = float("inf") if number > 0 else float("-inf")
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    shown = "".join(map(str, digits))
    power = len(shown) - 1 + int(exponent)
    minus = "-" if sign else ""
    if -4 <= power < 6:
        return minus + format(Decimal((0, digits, int(exponent))), "f")
    return "%s%s%se%+03d" % (minus, shown[0], "." + shown[1:] if len(shown) > 1 else "", power)


_SECOND = 10**9
# Durations are nanoseconds here.
_DURATIONS = {
    "containerLogMonitorInterval": 10 * _SECOND,
    "cpuCFSQuotaPeriod": _SECOND // 10,
    "imageMaximumGCAge": 0,
    "imageMinimumGCAge": 120 * _SECOND,
    "shutdownGracePeriod": 0,
    "shutdownGracePeriodCriticalPods": 0,
}


class FieldValues(NamedTuple):
    """Decoded values. Those of a wrong type count as absent: something else refuses them."""

    given: Mapping[str, Any]
    minor: int
    # The fields that a flag gives an empty value, in whose place no default comes.
    emptied: frozenset[str] = frozenset()

    def get(self, name: str) -> Any:
        """Return a field's value. An empty one takes the default, if the kubelet cannot distinguish it from an
        absent one."""
        value = self.given.get(name)
        if name in self.emptied or (value is not None and (value or _is_pointer(name))):
            return value
        default = self._default(name)
        return value if default is None else default

    def _default(self, name: str) -> object:
        if name == "failCgroupV1":
            return self.minor >= FAIL_CGROUP_V1_SINCE
        if name == "serializeImagePulls":
            # Several at a time cannot be pulled in series.
            return self.number("maxParallelImagePulls", 1) < 2
        return _DURATIONS[name] if name in _DURATIONS else DEFAULTS.get(name)

    def number(self, name: str, without: int = 0) -> int:
        """Return a number or a duration; `without` is for fields without a default."""
        for value in (self.get(name), self._default(name)):
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return without

    def text(self, name: str) -> str:
        """Return a text."""
        for value in (self.get(name), self._default(name)):
            if isinstance(value, str):
                return value
        return ""

    def is_true(self, name: str) -> bool:
        """Return whether a boolean is true."""
        value = self.get(name)
        return (value if isinstance(value, bool) else self._default(name)) is True

    def items(self, name: str) -> list[Any]:
        """Return a list."""
        value = self.get(name)
        return value if isinstance(value, list) else []

    def struct(self, name: str) -> Mapping[str, object]:
        """Return a struct; empty where there is none."""
        return struct_in(self.get(name))


def struct_in(value: object) -> Mapping[str, object]:
    """Return a value as a struct; empty where it is none."""
    return value if isinstance(value, Mapping) else {}


def text_in(value: object) -> str:
    """Return a value as a text; empty where it is none."""
    return value if isinstance(value, str) else ""


def number_in(value: object) -> int:
    """Return a value as a number; 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _is_pointer(name: str) -> bool:
    """Return whether an absent value can be distinguished from an empty one; also that of a list."""
    field = STRUCTS[KUBELET_CONFIGURATION].get(name)
    return field is not None and (field.is_pointer or field.type.kind == LIST)


# What the kubelet's validation says of single fields: the forms that many of its refusals have.
#
# Its source: pkg/kubelet/apis/config/validation (validation.go).


class NumberRange(NamedTuple):
    """What a number has to be. `allows_zero`: 0 is right beside it."""

    field: str
    flag: str
    least: int
    most: int
    text: str
    allows_zero: bool = False


NO_END = 2**63


def at_least_zero(field: str, flag: str) -> NumberRange:
    """Return a number that is not negative."""
    return NumberRange(field, flag, 0, NO_END, "must not be a negative number")


def between(field: str, flag: str, least: int, most: int, allows_zero: bool = False) -> NumberRange:
    """Return a number of a range."""
    return NumberRange(field, flag, least, most, "must be between %d and %d, inclusive" % (least, most), allows_zero)


def range_findings(fields: FieldValues, ranges: Sequence[NumberRange]) -> Iterator[Finding]:
    """Yield what is out of its range."""
    for limits in ranges:
        number = fields.number(limits.field)
        if limits.least <= number <= limits.most or (limits.allows_zero and not number):
            continue
        remedy = (
            "write %d or more" % limits.least
            if limits.most == NO_END
            else "write %d to %d" % (limits.least, limits.most)
        )
        text = "%s (--%s) %d %s" % (limits.field, limits.flag, number, limits.text)
        yield invalid(text, "the number is out of range", remedy, limits.field)


def invalid(text: str, cause: str, remedy: str, where: str) -> Finding:
    """Return a refusal of the validation."""
    return refused("invalid configuration: " + text, cause, remedy, where)


def gate_is_off(text: str, gate: str, where: str) -> Finding:
    """Return a refusal of a field whose feature gate is off."""
    remedy = "set featureGates.%s: true, or remove %s" % (gate, where)
    return invalid(text, "the gate %s is off" % gate, remedy, where)


def one_of(options: Sequence[str]) -> str:
    """Return options as the kubelet lists them."""
    return "%s or %s" % (", ".join(map(quote, options[:-1])), quote(options[-1]))
