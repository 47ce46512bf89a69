# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is secret by its name or its form, and how it is taken out of a text that somebody is shown. Pure.

A text is what a program says: a log, a refusal, an error. Secret in it are the values of keys, flags, variables and
headers whose names say so, users and queries of addresses, private keys, and tokens whose form is known. All else
stays, so that the reason of a failure can still be read. _kubelet/redacted_words.py knows more of a kubelet.

Each function takes linear time, and gives what it has given once more.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping

REDACTED = "redacted"

# Names of flags, variables and keys whose values are secret, but for those of files, and of switches of the kubelet.
_SECRET = re.compile(
    "token|secret|passw|passphrase|credential|header|api[-_]?key|access[-_]?key|private[-_]?key|key[-_]data"
    "|certificate[-_]data|vpn[-_]?auth|datastore[-_]endpoint|proxy|cookie|^auth$|^t$|^p$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    "[-_]?(?:file|path|dir|config|webhook|ttl)$|policy$|^(?:add-dir-header|skip-headers|skip-log-headers)$",
    re.IGNORECASE,
)
# The one header that is.
_HEADER = re.compile("url[-_]?header$", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Return whether the value of a flag, variable or key of this name is secret."""
    name = name.lstrip("-")
    return bool(is_header(name) or (_SECRET.search(name) and not _NO_SECRET.search(name)))


def is_header(name: str) -> bool:
    """Return whether the value of a flag or key of this name is a header, whose own name is no secret."""
    return bool(_HEADER.search(name))


def address_redacted(value: str, keep_path: bool = True) -> str:
    """Return a value without the user, the password and the query of the address that it may be.

    A password may have any sign, so all before the last @ counts as a part of it.
    """
    scheme, mark, rest = value.partition("://")
    if not mark:
        return value
    # An address of a file, as unix:///run/x, has no user.
    if "@" in rest and not rest.startswith("/"):
        rest = "%s@%s" % (REDACTED, rest.rpartition("@")[2])
    for sign in "?#":
        before, found, _query = rest.partition(sign)
        rest = before + sign + REDACTED if found else rest
    host, _slash, path = rest.partition("/")
    return scheme + mark + (rest if keep_path or not path else "%s/%s" % (host, REDACTED))


# --- texts ---------------------------------------------------------------------------------------------------

# These patterns are compiled where there is a text: most modules on most nodes have none, and it takes milliseconds.

_KEY_BLOCK = r"(?s)-----BEGIN [^-\n]{1,40}-----(?:(?:(?!-----).)*-----END [^-\n]{1,40}-----|[A-Za-z0-9+/=\\\s]*)"
# Up to a blank or a quote; that in an escaped text ends with a backslash.
_ADDRESS = r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://(?:[^\s\"<>\\`]|\\(?![\"'\\nrt]))+"
# Tokens of JWT, k3s, kubeadm, Amazon and GitHub.
_TOKEN = (
    r"(?<![\w.-])(?:eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|K10[0-9a-f]{20,}::[^\s,;\"'\\]+"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![\w-])"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|[a-z0-9]{6}\.(?=[a-z]{0,15}[0-9][0-9a-z]{0,14}[a-z])[a-z0-9]{16}(?![\w.-]))"
)
_SCHEME = r"(?:Bearer|Basic|Digest|Negotiate|Token|token|bearer|basic)[ \t]+"
_CREDENTIALS = r"\b((?:(?:Bearer|Basic|Negotiate)[ \t]+)+)([^\s\"'\\]+)"
# What YAML's errors quote of a value.
_QUOTED = r"(?<=anchor ')[^'\n]+(?=')|(?<=cannot decode !!)(\w+) `[^`\n]*`"

# A key and what stands between it and its value; the sign before it, and the quotes around it.
_PAIR = (
    r"(?P<opening>\\{0,8}[\"'])?(?<![\w.-])(?P<key>[\w.-]+)"
    r"(?:(?P<closing>\\{0,8}[\"'])?[ \t]*(?P<sign>=>|[:=])|(?=[ \t]))[ \t]*"
)
_OPENING = r"\\{0,8}[\"']"
# The forms of a value: of more than one line, without blanks, in a collection, and to the end of a line.
_BLOCK = r"[|>][-+0-9]{0,2}[ \t]*(?:\n[ \t]+[^\n]*)+"
_PLAIN = r"(?:%s)?[^\s]+" % _SCHEME
_IN_COLLECTION = r"[^,}\]\n]*"
_LINE = r"[^\n]*"
# So much of a line is read to see what its key is a part of.
_BEFORE = 200
# What may stand behind a value without blanks, as a part of the text around it.
_CLOSERS = "\\\"'`)]},;:."
_HARMLESS = frozenset(("", "true", "false", "null", "nil", "<nil>", "none", REDACTED))
# Words of sentences: a name with a sign behind it may be one, too.
_WORD = "[A-Z]{0,4}[a-z]*(?:'[a-z]+)?"
_BEHIND_A_FLAG = "and|are|as|cannot|does|flags?|has|have|in|is|must|not|or|should|to|was|were|with|-.*"
_SECRET_END = (
    r"(?i)(?:token|secret|passw(?:or)?d|passphrase|credential|header|key|data|auth|cookie|\bhttps?[-_]?proxy)s?$"
)
_AUTHORIZATION = "(?:Proxy-)?Authorization|(?:PROXY_)?AUTHORIZATION"


def text_redacted(text: str, is_secret_flag: Callable[[str], bool] = is_secret) -> str:
    """Return a text without what is secret in it.

    is_secret_flag: whether the value of a flag of this name, which begins with two dashes, is secret.
    """
    text = re.sub(_KEY_BLOCK, REDACTED, text)
    text = re.sub(_TOKEN, REDACTED, text)
    text = re.sub(_ADDRESS, lambda found: address_redacted(found.group()), text)
    text = re.sub(_QUOTED, lambda found: "%s `%s`" % (found.group(1), REDACTED) if found.group(1) else REDACTED, text)
    text = re.sub(_CREDENTIALS, _credentials_redacted, text)
    return _pairs_redacted(text, is_secret_flag)


def texts_redacted(value: Any) -> Any:
    """Return plain data with each text in it redacted, and without those whose keys say that they are secret."""
    if isinstance(value, str):
        return text_redacted(value)
    if isinstance(value, Mapping):
        return {
            key: REDACTED if item and isinstance(item, str) and is_secret(str(key)) else texts_redacted(item)
            for key, item in value.items()
        }
    return [texts_redacted(item) for item in value] if isinstance(value, (list, tuple)) else value


def _credentials_redacted(found: re.Match[str]) -> str:
    scheme, word = found.groups()
    value = word.rstrip(_CLOSERS)
    is_kept = REDACTED in word or re.fullmatch(_WORD, value)
    return found.group() if is_kept else scheme + REDACTED + word[len(value) :]


def _pairs_redacted(text: str, is_secret_flag: Callable[[str], bool]) -> str:
    pieces: list[str] = []
    at = start = 0
    pair = re.compile(_PAIR)
    while True:
        found = pair.search(text, start)
        if found is None:
            return "".join([*pieces, text[at:]])
        start = found.end("key")
        if not _is_secret_key(found, is_secret_flag):
            continue
        first, last = _value(text, found)
        if first < last and text[first:last] not in _HARMLESS:
            pieces += [text[at:first], REDACTED]
            at = last
        start = max(start, last)


def _is_secret_key(found: re.Match[str], is_secret_flag: Callable[[str], bool]) -> bool:
    key, sign = found.group("key", "sign")
    is_flag = key.startswith("--")
    if not sign:
        return is_flag and is_secret(key)
    if is_flag and sign == "=":
        return is_secret_flag(key)
    if re.fullmatch(_AUTHORIZATION, key):
        return True
    # Of one letter, a name says so of a flag alone.
    if len(key.lstrip("-")) == 1 or not is_secret(key):
        return False
    is_of_sentences = sign == ":" and not found.group("closing") and found.end() > found.end("sign")
    # What stands before a colon and a blank may be a path or a container, such as istio-proxy.
    before = found.string[found.start("key") - 1 : found.start("key")]
    return not is_of_sentences or (before != "/" and re.search(_SECRET_END, key) is not None)


def _value(text: str, found: re.Match[str]) -> tuple[int, int]:
    """Return from where to where in a text the value of a key goes; nowhere where it has none that is secret."""
    begin = found.end()
    quote = re.compile(_OPENING).match(text, begin)
    if text.startswith(REDACTED, begin if quote is None else quote.end()):
        return begin, begin
    if quote is not None:
        return quote.end(), _end_of_quoted(text, quote.end(), quote.group())
    opening, closing, sign = found.group("opening"), found.group("closing"), found.group("sign")
    if opening and not closing:
        # The key and its value are one text.
        return begin, _end_of_quoted(text, begin, opening)
    if text[begin : begin + 1] in ("{", "[") or text.startswith("map[", begin):
        return begin, _end_of_collection(text, begin)
    is_apart = sign == ":" and found.end() > found.end("sign")
    if sign == ":" and (closing or is_apart):
        kind = _IN_COLLECTION if closing else _form(text, found.start(), begin)
        if kind is not None:
            return begin, _match_end(kind, text, begin)
    last = _match_end(_PLAIN, text, begin)
    word = text[begin:last].rstrip(_CLOSERS)
    of_sentences = _BEHIND_A_FLAG if not sign else _WORD if is_apart else ""
    is_sentence = re.fullmatch(of_sentences, word)
    return begin, begin if is_sentence else begin + len(word)


def _form(text: str, start: int, begin: int) -> str | None:
    """Return what a value is that begins there, by what stands before its key; None for a word of a sentence."""
    before = text[max(0, start - _BEFORE) : start].rpartition("\n")[2].rstrip(" \t")
    if re.compile(_BLOCK).match(text, begin):
        return _BLOCK
    if before.endswith(("{", "[")) or (before.endswith(",") and "{" in before):
        return _IN_COLLECTION
    return None if before.strip(" \t-#") else _LINE


def _match_end(pattern: str, text: str, begin: int) -> int:
    found = re.compile(pattern).match(text, begin)
    return begin if found is None else found.end()


def _end_of_quoted(text: str, begin: int, quote: str) -> int:
    """Return where a value between quotes ends, which may be escaped themselves: at the line's end where it has no
    end."""
    at = begin
    line_end = text.find("\n", begin)
    line_end = len(text) if line_end < 0 else line_end
    while True:
        at = text.find(quote, at, line_end)
        if at < 0:
            return line_end
        if text[at - 1 : at] != "\\" or at == begin:
            return at
        at += len(quote)


def _end_of_collection(text: str, begin: int) -> int:
    depth = 0
    for at in range(begin, len(text)):
        sign = text[at]
        if sign == "\n":
            return at
        depth += (sign in "{[") - (sign in "}]")
        if not depth and sign in "}]":
            return at + 1
    return len(text)
