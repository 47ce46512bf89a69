# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet's unit removes, before the kubelet starts or after it has ended, and which cgroups it makes before.

Some installations remove the managers' states at each start, so that a change of the policy is not refused. Then the
kubelet finds no state: it refuses none, knows of no container's CPUs, and gives running pods their CPUs anew. Others
make the cgroups that a kubelet wants to find.
Source: systemd.service(5), systemd.slice(5); rm(1), mv(1), find(1), mkdir(1); sh(1).
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import Iterator, NamedTuple, Sequence

from .._base.errors import NodeError, RefusedError
from .._base.tree import Tree
from .._host.services import Command, commands_of, helpers_of, settings_of, split_words

# All that systemd runs around a kubelet. What is removed when it ends is not there at its next start.
_SETTINGS = ("ExecCondition", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost")
START, _AFTER_START = "ExecStart", "ExecStartPost"
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
_COPIERS = frozenset(("cp", "install", "ln", "mv"))
# They make no cgroup. What those two make, their words do not show as mkdir's do.
_NO_MAKERS = (frozenset(_KEEPERS.split()) | _REMOVERS | _WRITERS | {"find", "xargs"}) - {"cgcreate", "systemctl"}
# Words of a shell before a command, and those after which it need not run.
_BEFORE_COMMAND = frozenset(("!", "do", "else", "if", "then", "until", "while", "{"))
_BRANCHES = frozenset(("case", "elif", "else", "for", "if", "select", "until", "while"))
_ENDS = frozenset(("done", "esac", "fi", "}"))
_SEPARATOR = re.compile(r"(\|\||[;&|\n])")
_COMMENT = re.compile(r"(?:(?<=\s)|^)#.*", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\b([A-Za-z_]\w*)=([^\s;&|]*)")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_LARGEST_SCRIPT, _LONGEST_VALUE = 1 << 16, 256
_MOST_STEPS, _MOST_STARS = 4, 4


class Removal(NamedTuple):
    """Why a file is not there when the kubelet starts. how: SURE, UNCLEAR or UNREAD; source: the setting and file."""

    how: str
    source: str

    @property
    def is_sure(self) -> bool:
        """Whether the file is surely not there."""
        return self.how == SURE

    @property
    def is_seen(self) -> bool:
        """Whether a command names the file."""
        return self.how != UNREAD


def removals(tree: Tree, service: str, paths: Sequence[str]) -> dict[str, Removal]:
    """Return {path: Removal} of the files, by their paths on the node, that the unit of a service may remove."""
    found: dict[str, Removal] = {}
    for command, path, how in _effects(tree, service, paths):
        if path not in found or _rank(how) > _rank(found[path].how):
            found[path] = Removal(how, "%s in %s" % (command.setting, tree.path(command.path)))
    return found


def boot_removals(tree: Tree, service: str, paths: Sequence[str]) -> dict[str, str]:
    """Return {path: the setting and file} of the files that a unit surely removes at each boot, before a service."""
    return {
        path: "%s in %s" % (command.setting, tree.path(command.path))
        for helper in helpers_of(tree, service)
        if helper.at_boot
        for command in commands_of(tree, helper.name, (*_SETTINGS, START))
        for path in paths
        if _of_command(tree, command.words, path, 0) == SURE
    }


def _commands(tree: Tree, service: str, settings: Sequence[str]) -> Iterator[Command]:
    """Yield the commands of a unit, and those of the units that run to their end before each of its starts."""
    yield from commands_of(tree, service, settings)
    for helper in helpers_of(tree, service):
        if not helper.at_boot:
            yield from commands_of(tree, helper.name, (*settings, START))


def commands_without_secrets(tree: Tree, service: str, paths: Sequence[str], more: Sequence[str] = ()) -> list[Command]:
    """Return the commands by which the unit may remove these files, or make cgroups, as plain ones that do the same.

    more: settings that count, too: of a unit that runs before the kubelet's its ExecStart.
    """
    plain = {SURE: ["/bin/rm", "-f"], UNCLEAR: ["/usr/bin/truncate", "-s", "0"], UNREAD: ["/left-out"]}
    found = [
        command._replace(words=[*plain[how], *([] if how == UNREAD else [path])])
        for command, path, how in _effects(tree, service, paths, more)
    ]
    for command in _commands(tree, service, (*_BEFORE_START, *more)):
        text = " ".join([*command.words, _content_of(tree, command.words[0]) or ""] if command.words else [])
        for place in dict.fromkeys(_CGROUP.findall(_in_place(text))):
            made = _makes(tree, command.words, place, 0)
            if made is not False:
                found.append(command._replace(words=["/bin/mkdir", "-p", place] if made else plain[UNREAD]))
    return found


_CGROUPS = "/sys/fs/cgroup"
_CGROUP = re.compile(_CGROUPS + r"/[\w./,@-]+")
_BEFORE_START = ("ExecCondition", "ExecStartPre")
# Controllers of v1 in which systemd makes no cgroups. Source: cgroup_controller in src/basic/cgroup-util.h of systemd.
_NOT_OF_SYSTEMD = frozenset(("cpuset", "freezer", "hugetlb", "net_cls", "net_prio", "perf_event", "rdma"))
_SLICE = ".slice"


def is_made(tree: Tree, service: str, path: str) -> bool | None:
    """Return whether the unit of a service makes a cgroup before its program starts; None where that is not known."""
    found = [_makes(tree, command.words, path, 0) for command in _commands(tree, service, _BEFORE_START)]
    slices = [value for _path, name, value in settings_of(tree, service) if name == "Slice" and value]
    is_v2 = tree.exists(_CGROUPS + "/cgroup.controllers")
    hierarchy = _CGROUPS if is_v2 else "/".join(path.split("/")[: _CGROUPS.count("/") + 2])
    if slices and path[len(hierarchy) + 1 :] in _places_of_slice(slices[-1]):
        # Of the hierarchies of v1, systemd makes it in those that the unit's settings need, and never in these.
        controllers = posixpath.basename(hierarchy).split(",")
        found.append(True if is_v2 else False if _NOT_OF_SYSTEMD.issuperset(controllers) else None)
    return True if True in found else None if None in found else False


def overwriter(tree: Tree, service: str, path: str) -> str:
    """Return the command by which a unit surely writes a file anew before its program starts; empty for none."""
    for command in commands_of(tree, service, _BEFORE_START):
        if _overwrites(tree, command.words, path, 0):
            return "%s in %s" % (command.setting, tree.path(command.path))
    return ""


def _overwrites(tree: Tree, words: Sequence[str], path: str, steps: int) -> bool:
    """Return whether a command surely writes a file anew."""
    name, rest = posixpath.basename(words[0]) if words else "", list(words[1:])
    if name in _STARTERS:
        return _overwrites(tree, rest[_start_of(rest) :], path, steps + 1)
    if name in _COPIERS:
        return rest[-1:] == [path]
    if name == "tee":
        return path in rest and "-a" not in rest and "--append" not in rest
    script = _script_of(tree, rest) if name in _SHELLS else _content_of(tree, words[0]) if words else None
    if script is None or steps > _MOST_STEPS:
        return False
    parts, commands = _commands_in(script)
    if set(parts) & {"||", "&&"} or any(map(_is_branch, commands)):
        return False
    target = re.compile(r"(?<![>0-9&])>\|?[ \t]*[\"']?%s[\"']?(?![\w./-])" % re.escape(path))
    return bool(target.search(_in_place(script))) or any(
        _overwrites(tree, _simple(command), path, steps + 1) for command in commands if command
    )


def _places_of_slice(name: str) -> list[str]:
    """Return the paths of a slice and of those above it."""
    parts = name[: -len(_SLICE)].split("-")
    places = ["-".join(parts[: end + 1]) + _SLICE for end in range(len(parts))]
    return ["/".join(places[: end + 1]) for end in range(len(places))]


def _makes(tree: Tree, words: Sequence[str], path: str, steps: int) -> bool | None:
    """Return whether a command makes a directory; None where that is not known."""
    if not words:
        return False
    name, rest = posixpath.basename(words[0]), words[1:]
    if name in _STARTERS:
        return _makes(tree, rest[_start_of(rest) :], path, steps + 1)
    if name == "mkdir" or name in _NO_MAKERS:
        return name == "mkdir" and any(path in (place, *_above(place)) for place in map(posixpath.normpath, rest))
    script = _script_of(tree, rest) if name in _SHELLS else _content_of(tree, words[0])
    if script is None or steps > _MOST_STEPS:
        return None
    parts, commands = _commands_in(script)
    made = {_makes(tree, _simple(command), path, steps + 1) for command in commands if command}
    if True in made:
        return None if len(set(parts) & {"||", "&&"}) or any(map(_is_branch, commands)) else True
    return None if None in made else False


def _above(place: str) -> list[str]:
    parts = place.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _script_of(tree: Tree, words: Sequence[str]) -> str | None:
    """Return what a shell with these words runs; None where that cannot be read."""
    at = next((at for at, word in enumerate(words) if not word.startswith(("-", "+"))), len(words))
    if at == len(words):
        return ""
    return words[at] if any(re.fullmatch("-[a-z]*c", word) for word in words[:at]) else _content_of(tree, words[at])


def _effects(
    tree: Tree, service: str, paths: Sequence[str], more: Sequence[str] = ()
) -> Iterator[tuple[Command, str, str]]:
    """Yield (command, path, how) for each command and file that it may remove."""
    for command in _commands(tree, service, (*_SETTINGS, *more)):
        for path in paths:
            how = _of_command(tree, command.words, path, 0)
            if how == SURE and command.setting == _AFTER_START:
                # The kubelet may have written another one by its end.
                how = UNCLEAR
            if how:
                yield command, path, how


def _rank(how: str) -> int:
    return ("", UNREAD, UNCLEAR, SURE).index(how)


def _of_command(tree: Tree, words: Sequence[str], path: str, steps: int, in_shell: bool = False) -> str:
    """Return what a command does to a file: SURE, UNCLEAR, UNREAD; empty where it leaves the file alone."""
    if not words:
        return ""
    if steps > _MOST_STEPS:
        return UNREAD
    name, rest = posixpath.basename(words[0]), words[1:]
    if name in _STARTERS:
        how = _of_command(tree, rest[_start_of(rest) :], path, steps + 1, in_shell)
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


def _start_of(words: Sequence[str]) -> int:
    """Return where the command begins that one of _STARTERS runs."""
    return next((at for at, word in enumerate(words) if not re.match(r"-|\w+=|\d", word)), len(words))


def _of_find(words: Sequence[str], path: str) -> str:
    start = next((at for at, word in enumerate(words) if word.startswith(("-", "(", "!"))), len(words))
    tests = words[start:]
    removes = "-delete" in tests or any(posixpath.basename(word) in _REMOVERS for word in tests)
    names = [text for name, text in zip(tests, tests[1:]) if name in ("-name", "-path", "-wholename")]
    matches = all(_fits(path, text) or _fits(posixpath.basename(path), text) for text in names)
    if not removes or not matches or not any(_is_below(path, place) for place in words[:start]):
        return ""
    return SURE if _PLAIN_TESTS.issuperset(word for word in tests if word.startswith("-")) else UNCLEAR


def _of_remover(name: str, words: Sequence[str], path: str, in_shell: bool) -> str:
    flags = [word for word in words if word.startswith("-")]
    targets = [word for word in words if not word.startswith("-")]
    if name == "mv" and not any(flag.startswith(("-t", "--target")) for flag in flags):
        targets = targets[:-1]
    takes_all = name == "mv" or any(_is_recursive(flag) for flag in flags)
    if any(_matches(path, target, in_shell) or (takes_all and _is_below(path, target, in_shell)) for target in targets):
        return SURE
    return UNREAD if any("$" in target for target in targets) else ""


def _is_recursive(flag: str) -> bool:
    return flag == "--recursive" or (not flag.startswith("--") and not {"r", "R"}.isdisjoint(flag))


def _matches(path: str, target: str, in_shell: bool) -> bool:
    target = posixpath.normpath(target)
    return path == target or (in_shell and path.count("/") == target.count("/") and _fits(path, target))


def _fits(text: str, pattern: str) -> bool:
    # With many stars, Python before 3.9 takes time without end.
    return pattern.count("*") <= _MOST_STARS and fnmatchcase(text, pattern)


def _is_below(path: str, target: str, in_shell: bool = False) -> bool:
    parts = path.split("/")
    return any(_matches("/".join(parts[:end]) or "/", target, in_shell) for end in range(1, len(parts)))


def _of_shell(tree: Tree, words: Sequence[str], path: str, steps: int, in_shell: bool) -> str:
    """Return what a shell with these words does to a file."""
    at = next((at for at, word in enumerate(words) if not word.startswith(("-", "+"))), len(words))
    is_file = at < len(words) and not any(re.fullmatch("-[a-z]*c", word) for word in words[:at])
    if is_file and in_shell:
        return UNREAD
    script = _script_of(tree, words)
    return UNREAD if script is None else _of_script(tree, script, path, steps)


def _of_file(tree: Tree, program: str, path: str, steps: int) -> str:
    """Return what a program does to a file, if it is a script of a shell that can be read; scripts of that are not."""
    script = _content_of(tree, program)
    return UNREAD if script is None else _of_script(tree, script, path, steps)


def _content_of(tree: Tree, program: str) -> str | None:
    """Return the text of a program that is a script of a shell; None for any other, and where it cannot be read."""
    try:
        content = tree.content(program, _LARGEST_SCRIPT) if posixpath.isabs(program) else None
    except (NodeError, RefusedError):
        return None
    if content is None or not re.match(rb"#![^\n]*\b(?:ash|bash|dash|sh)\b", content):
        return None
    return content.decode("utf-8", "replace")


def _of_script(tree: Tree, text: str, path: str, steps: int) -> str:
    """Return what a script of a shell does to a file."""
    text = _in_place(text)
    parts, commands = _commands_in(text)
    how = max((_of_command(tree, _simple(words), path, steps + 1, True) for words in commands), key=_rank)
    if how == SURE and ("||" in parts or any(sign in text for sign in "()`") or any(map(_is_branch, commands))):
        return UNCLEAR
    return UNCLEAR if how != SURE and path in text and ">" in text else how


def _in_place(text: str) -> str:
    """Return a script without its comments, and with the values of its variables in their place."""
    text = _COMMENT.sub("", text.replace("\\\n", " "))
    names = {name: value for name, value in _ASSIGNMENT.findall(text) if len(value) <= _LONGEST_VALUE}
    return _VARIABLE.sub(lambda found: names.get(found.group(1), found.group()), text)


def _commands_in(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the parts of a script with what separates them, and the words of each command."""
    parts = _SEPARATOR.split(_in_place(text))
    return parts, [split_words(part) for part in parts[::2]]


def _is_branch(words: Sequence[str]) -> bool:
    """Return whether what follows need not run. A condition that only asks whether a file is there does not count."""
    asks = words[1:2] and words[1] in ("[", "[[", "test") and words[2:3] and words[2] in ("-e", "-f", "-r", "-s")
    return bool(words) and words[0] in _BRANCHES and not (words[0] == "if" and asks)


def _simple(words: Sequence[str]) -> Sequence[str]:
    """Return a simple command without what a shell has before it."""
    start = next(
        (at for at, word in enumerate(words) if word not in _BEFORE_COMMAND and not _ASSIGNMENT.fullmatch(word)),
        len(words),
    )
    return [] if words[start : start + 1] and words[start] in _ENDS else words[start:]
