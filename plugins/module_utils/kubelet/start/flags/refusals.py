# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words with which a kubelet refuses a flag.

Source: cmd/kubelet/app (server.go); github.com/spf13/pflag (flag.go, errors.go).
"""

from __future__ import annotations

from ..refusal import StartError, UnpredictableError
from . import table
from .table import Flag, removed_in
from .values import quoted

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
