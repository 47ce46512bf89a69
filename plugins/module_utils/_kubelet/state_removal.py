# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of the kubelet's states its unit removes, before the kubelet starts or after it has ended.

Some installations do that at each start, so that a change of the policy is not refused. Then the kubelet finds no
state: it refuses none, knows of no container's CPUs, and gives running pods their CPUs anew.
Source: systemd.service(5); rm(1), mv(1), find(1); sh(1).
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import Iterator, NamedTuple, Sequence

from .._base.errors import NodeError, RefusedError
from .._base.tree import Tree
from .._host.services import commands_of, split_words

# All that systemd runs around a kubelet. What is removed when it ends is not there at its next start.
_SETTINGS = ("ExecCondition", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost")
# It removes the file; it names the file, and what it does is not clear; it cannot be read.
SURE, UNCLEAR, UNREAD = "sure", "unclear", "unread"
_REMOVERS = frozenset(("mv", "rm", "unlink"))
# With these, `find` leaves out nothing whose name matches.
_PLAIN_TESTS = frozenset(("-delete", "-exec", "-f", "-maxdepth", "-name", "-path", "-type", "-wholename"))
_SHELLS = frozenset(("ash", "bash", "dash", "sh"))
# They run the command that their own words name.
_STARTERS = frozenset(("chrt", "env", "exec", "ionice", "nice", "sudo", "timeout"))
# They remove nothing.
_KEEPERS = """
: [ awk cat cgcreate chcon chgrp chmod chown conntrack crictl ctr curl cut date docker echo ethtool export false
grep hostname hostnamectl id ip ip6tables ip6tables-restore ipset iptables iptables-restore kill killall logger lvm
mkdir mknod modprobe mount mountpoint nerdctl pkill podman printf restorecon set setenforce sleep swapoff sync
sysctl systemctl systemd-cgls tc test touch tr true udevadm umount wget
"""
# They may write a file that their own words name.
_WRITERS = frozenset(("cp", "dd", "install", "ln", "sed", "tee", "truncate"))
# Words of a shell before a command, and those after which it need not run.
_BEFORE_COMMAND = frozenset(("!", "do", "else", "if", "then", "until", "while", "{"))
_BRANCH = re.compile(r"(?:^|[\s;&|])(?:case|elif|else|for|if|select|until|while)\s|\|\||[()`]|\$\(")
# A condition that only asks whether a file is there.
_IF_THERE = re.compile(r"(?:^|(?<=[\s;&|]))if\s+(?:\[+|test)\s+-[efrs]\s+[^\s;\]]+\s*\]*\s*(?=[;\n])")
_SEPARATOR = re.compile(r"&&|\|\||[;&|\n]")
_COMMENT = re.compile(r"(?:(?<=\s)|^)#.*", re.MULTILINE)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(\S*)")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_LARGEST_SCRIPT, _LONGEST_VALUE = 1 << 16, 256
_MOST_STEPS = 4


class Removal(NamedTuple):
    """Why a file is not there when the kubelet starts. how: SURE, UNCLEAR or UNREAD; source: the setting and file."""

    how: str
    source: str


def removals(tree: Tree, service: str, paths: Sequence[str]) -> dict[str, Removal]:
    """Return {path: Removal} of the files, by their paths on the node, that the unit of a service may remove."""
    found: dict[str, Removal] = {}
    for setting, source, words in commands_of(tree, service, _SETTINGS):
        for path in paths:
            how = _of_command(tree, words, path, 0)
            if how and (path not in found or _rank(how) > _rank(found[path].how)):
                found[path] = Removal(how, "%s in %s" % (setting, tree.path(source)))
    return found


def _rank(how: str) -> int:
    return ("", UNREAD, UNCLEAR, SURE).index(how)


def _strongest(found: Iterator[str]) -> str:
    return max(found, key=_rank, default="")


def _of_command(tree: Tree, words: Sequence[str], path: str, steps: int, in_shell: bool = False) -> str:
    """Return what a command does to a file: SURE, UNCLEAR, UNREAD; empty where it leaves the file alone."""
    if not words:
        return ""
    if steps > _MOST_STEPS:
        return UNREAD
    name, rest = posixpath.basename(words[0]), words[1:]
    if name in _STARTERS:
        start = next((at for at, word in enumerate(rest) if not re.match(r"-|\w+=|\d", word)), len(rest))
        how = _of_command(tree, rest[start:], path, steps + 1, in_shell)
    elif name == "xargs":
        # What its command is given comes from elsewhere.
        how = UNREAD if any(posixpath.basename(word) in _REMOVERS for word in rest) else ""
    elif name == "find":
        how = _of_find(rest, path)
    elif name in _REMOVERS:
        how = _of_remover(name, rest, path, in_shell)
    elif name in _SHELLS:
        how = _of_shell(tree, rest, path, steps, in_shell)
    elif name in _WRITERS:
        how = UNCLEAR if path in rest else ""
    else:
        how = "" if name in _KEEPERS.split() else UNREAD if in_shell else _of_file(tree, words[0], path, steps)
    return how


def _of_find(words: Sequence[str], path: str) -> str:
    start = next((at for at, word in enumerate(words) if word.startswith(("-", "(", "!"))), len(words))
    tests = words[start:]
    removes = "-delete" in tests or any(posixpath.basename(word) in _REMOVERS for word in tests)
    names = [text for name, text in zip(tests, tests[1:]) if name in ("-name", "-path", "-wholename")]
    matches = all(fnmatchcase(path, text) or fnmatchcase(posixpath.basename(path), text) for text in names)
    if not removes or not matches or not any(_is_below(path, place) for place in words[:start]):
        return ""
    return SURE if _PLAIN_TESTS.issuperset(word for word in tests if word.startswith("-")) else UNCLEAR


def _of_remover(name: str, words: Sequence[str], path: str, in_shell: bool) -> str:
    flags = [word for word in words if word.startswith("-") and word != "-"]
    targets = [word for word in words if word not in flags]
    if name == "mv" and not any(flag.startswith(("-t", "--target")) for flag in flags):
        targets = targets[:-1]
    takes_all = name == "mv" or any(re.fullmatch(r"-[a-zA-Z]*[rR][a-zA-Z]*|--recursive", flag) for flag in flags)
    if any(_matches(path, target, in_shell) or (takes_all and _is_below(path, target, in_shell)) for target in targets):
        return SURE
    return UNREAD if any("$" in target for target in targets) else ""


def _matches(path: str, target: str, in_shell: bool) -> bool:
    target = posixpath.normpath(target)
    return path == target or (in_shell and path.count("/") == target.count("/") and fnmatchcase(path, target))


def _is_below(path: str, target: str, in_shell: bool = False) -> bool:
    parts = path.split("/")
    return any(_matches("/".join(parts[:end]) or "/", target, in_shell) for end in range(1, len(parts)))


def _of_shell(tree: Tree, words: Sequence[str], path: str, steps: int, in_shell: bool) -> str:
    """Return what a shell with these words does to a file."""
    at = next((at for at, word in enumerate(words) if not word.startswith(("-", "+"))), len(words))
    if at == len(words):
        return ""
    if any(re.fullmatch("-[a-z]*c", word) for word in words[:at]):
        return _of_script(tree, words[at], path, steps)
    return UNREAD if in_shell else _of_file(tree, words[at], path, steps)


def _of_file(tree: Tree, program: str, path: str, steps: int) -> str:
    """Return what a program does to a file, if it is a script of a shell that can be read; scripts of that are not."""
    try:
        content = tree.content(program, _LARGEST_SCRIPT) if posixpath.isabs(program) else None
    except (NodeError, RefusedError):
        return UNREAD
    if content is None or not re.match(rb"#![^\n]*\b(?:ash|bash|dash|sh)\b", content):
        return UNREAD
    return _of_script(tree, content.decode("utf-8", "replace"), path, steps)


def _of_script(tree: Tree, text: str, path: str, steps: int) -> str:
    """Return what a script of a shell does to a file."""
    text = _COMMENT.sub("", text.replace("\\\n", " "))
    names = {name: value for name, value in _ASSIGNMENT.findall(text) if len(value) <= _LONGEST_VALUE}
    text = _VARIABLE.sub(lambda found: names.get(found.group(1), found.group()), text)
    how = _strongest(
        _of_command(tree, words, path, steps + 1, in_shell=True) for words in map(_simple, _SEPARATOR.split(text))
    )
    if how == SURE and _BRANCH.search(_IF_THERE.sub("", text)):
        return UNCLEAR
    return UNCLEAR if how != SURE and path in text and ">" in text else how


def _simple(text: str) -> list[str]:
    """Return the words of a simple command, without what a shell has before it."""
    words = split_words(text)
    while words and (words[0] in _BEFORE_COMMAND or _ASSIGNMENT.fullmatch(words[0])):
        del words[0]
    return [] if words[:1] in (["fi"], ["done"], ["}"], ["esac"]) else words
