# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The secrets in a kubelet's files, taken out so that the files say the same to our modules. Pure.

Of environment files, units and k3s' configuration only what gives a kubelet its flags is kept. In what is kept, the
values of secret flags, variables and headers, and user names and passwords in URLs, are replaced by REDACTED.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Callable, Container, Iterator, Sequence

from ..errors import ConfigurationError, InputError
from ..kubelet.file.configuration import KubeletConfiguration
from ..kubelet.file.values import same
from ..kubelet.installed.flag_file import kubelet_args, read_environment, split_words

REDACTED = "redacted"

# A change of a file's text.
Redaction = Callable[[str], str]

# Names of flags, variables and keys whose values are secret, but for those of files, and of switches of the kubelet.
_SECRET = re.compile(
    "token|secret|passw|credential|header|access[-_]?key|private[-_]?key|key[-_]data|certificate[-_]data|vpn[-_]?auth"
    "|datastore[-_]endpoint|proxy|^t$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    "[-_](?:file|path|dir|config|webhook|ttl)$|^(?:add-dir-header|skip-headers|skip-log-headers)$", re.IGNORECASE
)
# The one header that is.
_HEADER = re.compile("url[-_]?header$", re.IGNORECASE)
# The name that a URL's user and password stand before.
_URL = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)[^/\s\"'@]*(?::[^/\s\"']*)?@")
# A flag and its value, or a flag alone.
_FLAG = re.compile(
    r"""(?<![\w-])(--?[A-Za-z][\w-]*)(?:(=)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"']*)"""
    r"""|([ \t]+)("(?!-)(?:[^"\\]|\\.)*"|'(?!-)[^']*'|[^\s"'-][^\s"']*))"""
)
# A key of YAML or JSON and its value on one line.
_MEMBER = re.compile(r"""(["']?)([\w.-]+)\1(\s*:[ \t]+|\s*:(?=["']))("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,}\]#]+)""")
_HEADERS = "staticpodurlheader"

_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
# How the names of variables with flags end.
_OF_FLAGS = ("ARGS", "FLAGS", "OPTIONS", "OPTS")


class UnsafeError(Exception):
    """A text may hold secrets, and is written in a way in which these cannot be told from the rest."""


def is_secret(name: str) -> bool:
    """Whether the value of a flag, variable or key of this name is secret."""
    name = name.lstrip("-")
    return bool(_HEADER.search(name) or (_SECRET.search(name) and not _NO_SECRET.search(name)))


def without_users(text: str) -> str:
    """A text whose URLs name no user and no password."""
    return _URL.sub(r"\1%s@" % REDACTED, text)


def words_redacted(words: Sequence[str]) -> list[str]:
    """The words of a command line without its secrets."""
    found: list[str] = []
    is_next = False
    for word in words:
        name, equals, value = word.partition("=")
        if is_next and not word.startswith("-"):
            found.append(_value(found[-1], word))
            is_next = False
            continue
        is_next = False
        if name == "--kubelet-arg" and equals:
            found.append("%s=%s" % (name, words_redacted(["--" + value.lstrip("-")])[0][2:]))
        elif name.startswith("-") and is_secret(name):
            found.append("%s=%s" % (name, _value(name, value)) if equals else word)
            is_next = not equals
        else:
            found.append(without_users(word))
    return found


def _value(name: str, value: str) -> str:
    """What takes the place of a secret value. A header's name is none."""
    header = value.partition(":")
    return "%s:%s" % (header[0], REDACTED) if _HEADER.search(name) and header[1] else REDACTED


def flags_redacted(text: str) -> str:
    """A text with flags and their values, on lines or in a variable, without their secrets."""

    def redacted(found: re.Match[str]) -> str:
        name, equals, given, space, following = found.groups()
        between, value = equals or space, given if equals else following
        if name == "--kubelet-arg" and value:
            inner = value.strip("\"'")
            return "%s%s%s" % (name, between, value.replace(inner, words_redacted(["--" + inner])[0][2:]))
        if not is_secret(name) or not value:
            return found.group()
        quote = value[0] if value[0] in "\"'" else ""
        return "%s%s%s%s%s" % (name, between, quote, _value(name, value.strip(quote)), quote)

    return without_users(_FLAG.sub(redacted, text))


# --- environment files and units ---------------------------------------------------------------------------


def environment_redacted(text: str, needed: Container[str] = ()) -> str:
    """An environment file with all its variables. Those that give no flags lose their values.

    needed: the variables that a unit's command line has.
    """
    lines = []
    for name, value in read_environment(text).items():
        kept = _variable(name, value, needed)
        for sign in '\\"`$':
            kept = kept.replace(sign, "\\" + sign)
        lines.append('%s="%s"\n' % (name, kept))
    return "".join(lines)


def _variable(name: str, value: str, needed: Container[str]) -> str:
    words = split_words(value)
    if not words or words[0].startswith("-") or name.endswith(_OF_FLAGS):
        return flags_redacted(value)
    return without_users(value) if name in needed and not is_secret(name) else REDACTED


def variables_of(command: str) -> set[str]:
    """The names of the variables in a unit's command line."""
    return set(_VARIABLE.findall(command))


def unit_redacted(
    settings: Sequence[tuple[str, str]], variables: Callable[[str], dict[str, str]], needed: Container[str]
) -> str:
    """A unit, or a drop-in file of one, with what gives a kubelet its flags.

    settings: what its section of the service says, in order. variables: reads the value of Environment=.
    needed: the variables that the command line has, which may stand in another file.
    """
    lines = ["[Service]\n"]
    for key, value in settings:
        if key == "Environment" and value:
            for name, content in variables(value).items():
                lines.append('Environment="%s=%s"\n' % (name, _escaped(_variable(name, content, needed))))
        elif key in ("ExecStart", "Environment", "EnvironmentFile"):
            lines.append("%s=%s\n" % (key, flags_redacted(value) if key == "ExecStart" else value))
    return "".join(lines)


def _escaped(value: str) -> str:
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        value = value.replace(sign, written)
    return value


# --- YAML and JSON -----------------------------------------------------------------------------------------


def kubelet_args_redacted(text: str) -> str:
    """k3s' or RKE2's configuration file with the kubelet's arguments alone. Raises UnsafeError."""
    before = "kubelet-arg: [first]\n"
    try:
        first, words = kubelet_args([before, text])
    except ValueError as error:
        raise UnsafeError(str(error)) from error
    if first and not words:
        return ""
    words = [word[len("--") :] for word in words_redacted(words)]
    # A file's list takes the place of those before it, unless its key has a plus.
    return json.dumps({"kubelet-arg+" if first else "kubelet-arg": words}) + "\n"


def configuration_redacted(text: str) -> str:
    """A KubeletConfiguration without the secrets of headers and URLs, else the same to the byte. Raises UnsafeError."""
    try:
        configuration = KubeletConfiguration.parse(text)
    except ConfigurationError:
        if _HEADERS in text.lower():
            raise UnsafeError("%s in a file that cannot be read" % _HEADERS) from None
        return without_users(_MEMBER.sub(_member_redacted, text))
    for key, value in configuration.values.items():
        if key.lower() == _HEADERS and any(_texts(value)):
            configuration = _without_headers(configuration, key)
    return without_users(configuration.text)


def _member_redacted(found: re.Match[str]) -> str:
    quote, name, colon, value = found.groups()
    if not is_secret(name):
        return found.group()
    sign = value[0] if value[0] in "\"'" else ""
    return "%s%s%s%s%s%s%s" % (quote, name, quote, colon, sign, REDACTED, sign)


def _without_headers(configuration: KubeletConfiguration, key: str) -> KubeletConfiguration:
    wanted = {**configuration.values, key: _redacted(configuration.values[key])}
    # First in place, so that no line changes but those.
    text = configuration.text
    for secret in sorted(set(_texts(configuration.values[key])), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    with suppress(ConfigurationError):
        changed = KubeletConfiguration.parse(text)
        if same(changed.values, wanted):
            return changed
    try:
        return configuration.with_changes({(key,): wanted[key]})
    except (ConfigurationError, InputError) as error:
        raise UnsafeError("%s is written in a way in which it cannot be changed" % key) from error


def _redacted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    return REDACTED if isinstance(value, str) and value else value


def _texts(value: object) -> Iterator[str]:
    """All texts in a value that are not empty, keys left out."""
    if isinstance(value, str):
        yield from [value] if value else []
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
