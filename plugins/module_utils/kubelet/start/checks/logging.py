# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kubelet refuses of its logging, as the first of all fields.

Source: k8s.io/component-base/logs/api/v1 (options.go, registry.go).
"""

from __future__ import annotations

from typing import Iterator, Mapping

from ....errors import GoError
from ....golang import quote
from ...gates.enabled import Gates
from ..finding import Finding, refused
from .amount import Amount
from .field_values import FieldValues, number_in, struct_in, text_in

_WHERE = "logging"
_CONTEXT = "initialize logging: "

_TEXT, _JSON = "text", "json"
_MOST = 2**31 - 1
_ALPHA, _BETA = "LoggingAlphaOptions", "LoggingBetaOptions"


def logging_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """All that it refuses, in the kubelet's order."""
    logging = fields.struct(_WHERE)
    if not logging:
        return
    log_format = text_in(logging.get("format"))
    if not log_format and "logging.format" not in fields.emptied:
        log_format = _TEXT
    if log_format not in (_TEXT, _JSON):
        text = "Invalid value: %s: Unsupported log format" % quote(log_format)
        yield _refused("format", text, "there is no such format", "write text or json")
    elif log_format == _JSON and not gates.enabled(_BETA):
        text = "Forbidden: Log format json is disabled, see LoggingBetaOptions feature"
        yield _refused("format", text, "the gate %s is off" % _BETA, "set the gate to true, or write text")
    yield from _level_finding("verbosity", logging)
    yield from _pattern_findings(logging.get("vmodule"), log_format)
    options = struct_in(logging.get("options"))
    if options and not gates.enabled(_ALPHA):
        for name in (_TEXT, _JSON):
            yield from _option_findings(name, struct_in(options.get(name)))


def _pattern_findings(patterns: object, log_format: str) -> Iterator[Finding]:
    if not isinstance(patterns, list):
        return
    if patterns and log_format not in ("", _TEXT):
        text = "Forbidden: Only supported for text log format"
        yield _refused("vmodule", text, "the format is another", "remove vmodule, or set logging.format: text")
    for position, item in enumerate(map(struct_in, patterns)):
        where = "vmodule[%d]" % position
        pattern = text_in(item.get("filePattern"))
        if not pattern:
            text = "Required value: File pattern must not be empty"
            yield _refused(where, text, "filePattern is empty", "write the name of a source file without .go")
        if "=" in pattern or "," in pattern:
            text = "Invalid value: %s: File pattern must not contain equal sign or comma" % quote(pattern)
            yield _refused(where, text, "it stands for one file only", "write an entry for each file")
        yield from _level_finding(where, item)


def _level_finding(where: str, struct: Mapping[str, object]) -> Iterator[Finding]:
    level = number_in(struct.get("verbosity"))
    if level > _MOST:
        text = "Invalid value: 0x%x: Must be <= %d" % (level, _MOST)
        yield _refused(where, text, "the number is too large", "write a smaller number; 10 is all that there is")


def _option_findings(name: str, options: Mapping[str, object]) -> Iterator[Finding]:
    given = {"splitStream": options.get("splitStream") is True, "infoBufferSize": _is_size(options)}
    for option, is_set in given.items():
        if is_set:
            text = "Forbidden: Feature %s is disabled" % _ALPHA
            where = "options.%s.%s" % (name, option)
            yield _refused(where, text, "the gate %s is off" % _ALPHA, "set the gate to true, or remove it")


def _is_size(options: Mapping[str, object]) -> bool:
    """Whether the size of the buffer is a number other than 0."""
    size = options.get("infoBufferSize")
    try:
        return Amount.parse(size).value != 0 if isinstance(size, str) else number_in(size) != 0
    except GoError:
        return False


def _refused(name: str, text: str, cause: str, remedy: str) -> Finding:
    where = "%s.%s" % (_WHERE, name)
    return refused("%s: %s" % (where, text), cause, remedy, where)._replace(context=_CONTEXT)
