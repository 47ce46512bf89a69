# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which profile tuned has, and whether it keeps the system off some CPUs, as cpu-partitioning and realtime do.

Source: tuned/consts.py and profiles/ of tuned. From 2.24 on, profiles are in a directory "profiles" below the old ones.
"""

from __future__ import annotations

import re
from typing import Iterator, Mapping, NamedTuple, Sequence

from ...cpuset import CPUSet
from ...errors import InputError
from ...tree import Tree
from ..layers import INTERRUPTS, IRQBALANCE, MANAGER, WORKQUEUES
from ..look import is_there, text_at

ACTIVE_PROFILE, PROFILE_MODE = "/etc/tuned/active_profile", "/etc/tuned/profile_mode"
# The first that has a profile counts.
_PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_PROFILE = "%s/%s/tuned.conf"
# Options by which a profile moves what is not its CPUs' work off them: (section, option).
_ISOLATING = (("scheduler", "isolated_cores"), ("systemd", "cpu_affinity"), ("irqbalance", "banned_cpus"))
_CORES = "isolated_cores"
# What of such a line stays: its beginning, and its end with a comment.
_CORES_LINE = re.compile(
    rb"([ \t]*isolated_cores[ \t]*=(?:[ \t]*(?=[^\s#]))?)(?:[^\s#][^ \t\r\n]*(?:[ \t]+[^ \t\r\n#][^ \t\r\n]*)*)?"
    rb"([ \t]*(?:(?<=[ \t])#[^\r\n]*)?[\r\n]*)"
)
# A file of variables has no sections.
_VARIABLES = "[variables]\n"
# What a value says that only tuned can work out: one of its functions, or another variable.
_WORKED_OUT = "${"
# Which layer of a host a plugin of tuned sets, by which of its options.
_LAYERS = (
    ("scheduler", "isolated_cores", INTERRUPTS),
    ("irqbalance", "banned_cpus", IRQBALANCE),
    ("systemd", "cpu_affinity", MANAGER),
)
_WORKQUEUES = re.compile(r"/sys/(?=.*workqueue)[^\n]*/cpumask")
# Options of a section that decide whether it counts, and how it is merged with that of an included profile.
_OF_SECTION = ("type", "enabled", "replace", "drop")
_YES = ("1", "true", "True")
# By which the scheduler plugin leaves interrupts alone.
_NO_INTERRUPTS = ("irq_process", ("0", "false", "False"))
_COMMAND_LINE = "cmdline"
# Arguments of the kernel that say on which CPUs its work is done.
_ARGUMENTS = ("nohz_full", "rcu_nocbs", "isolcpus", "irqaffinity")
# Where a profile's own file cannot be read, the beginning of its name says it.
_KNOWN = ("cpu-partitioning", "realtime", "openshift-node-performance")
# A profile includes others, and each of these others.
_MOST_PROFILES = 32

_Sections = Mapping[str, Mapping[str, str]]


class Tuned(NamedTuple):
    """What tuned is set to.

    profiles: the active ones. mode: "manual", "auto", or empty. isolates: whether they keep work off CPUs.
    isolated_text: which, as it is written, which may be one of tuned's functions; isolated: the CPUs, None where the
    text gives none. variables: the file in which they are set; empty where the profile itself does. files: those read.
    layers: of the host, those that the profile sets. arguments: of the kernel, those that it gives.
    """

    profiles: tuple[str, ...]
    mode: str
    isolates: bool
    isolated_text: str
    isolated: CPUSet | None
    variables: str
    files: tuple[str, ...]
    layers: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def is_worked_out(self) -> bool:
        """Whether tuned works the CPUs out itself, by a function."""
        return _WORKED_OUT in self.isolated_text


def read_tuned(tree: Tree) -> Tuned | None:
    """What tuned is set to; None where it has no active profile."""
    profiles = tuple(text_at(tree, ACTIVE_PROFILE).split())
    if not profiles:
        return None
    files: list[str] = [ACTIVE_PROFILE]
    chain = list(_chain(tree, profiles, files))
    isolates = any(option in sections.get(section, {}) for sections in chain for section, option in _ISOLATING)
    if len(files) == 1:
        isolates = any(profile.startswith(_KNOWN) for profile in profiles)
    text, variables = _isolated(tree, chain) if isolates else ("", "")
    merged = _merged(chain)
    return Tuned(
        profiles,
        text_at(tree, PROFILE_MODE).strip(),
        isolates,
        text,
        _cpus(text),
        variables,
        (*files, *([variables] if variables else [])),
        tuple(_layers(merged)),
        tuple(_arguments(merged)),
    )


def with_isolated(content: bytes, cpus: CPUSet) -> bytes:
    """A file of variables with these isolated CPUs, all else to the byte: the last line with them counts."""
    lines = content.splitlines(keepends=True)
    value = str(cpus).encode("ascii")
    for number in reversed(range(len(lines))):
        found = _CORES_LINE.fullmatch(lines[number])
        if found is not None:
            before, after = found.groups()
            return b"".join([*lines[:number], before, value, after, *lines[number + 1 :]])
    end = b"" if not lines or content.endswith((b"\n", b"\r")) else b"\n"
    return b"%s%s%s=%s\n" % (content, end, _CORES.encode("ascii"), value)


def isolated_in(content: bytes) -> CPUSet | None:
    """The isolated CPUs that a file of variables gives; None where it gives none."""
    return _cpus(_parse(_VARIABLES + content.decode("utf-8", "replace")).get("variables", {}).get(_CORES, ""))


def essence(text: str) -> str:
    """What is read here of a profile's file, or of a file of variables, as a file of its own."""
    lines = []
    for section, options in _parse(_VARIABLES + text).items():
        found = {name: _essence_of(section, name, value) for name, value in options.items()}
        read = ["%s=%s\n" % (name, value) for name, value in found.items() if value]
        lines += ["[%s]\n" % section, *read] if read else []
    return "".join(lines)


def _essence_of(section: str, name: str, value: str) -> str:
    """What is read of an option; empty for nothing."""
    if name.startswith(_COMMAND_LINE):
        # It may have secrets in it.
        return " ".join("%s=%s" % (word, cpus) for word, cpus in _words(value))
    if section in ("main", "variables"):
        return value if name == "include" or (section, name) == ("variables", _CORES) else ""
    read = (*_OF_SECTION, _NO_INTERRUPTS[0], *(option for _plugin, option in _ISOLATING))
    return value if name in read or _WORKQUEUES.fullmatch(name) else ""


def _merged(chain: Sequence[_Sections]) -> dict[str, dict[str, str]]:
    """The sections of all profiles together, as tuned merges them."""
    merged: dict[str, dict[str, str]] = {}
    for sections in reversed(chain):
        for name, options in sections.items():
            left = {} if options.get("replace") in _YES else dict(merged.get(name, {}))
            for option in re.split("[,;]", options.get("drop", "")):
                left.pop(option.strip(), None)
            # The type of a section, and whether it is enabled, do not pass on from a profile that is included.
            merged[name] = {**left, "type": name, "enabled": _YES[0], **options}
    return {name: options for name, options in merged.items() if options["enabled"] in _YES}


def _layers(merged: _Sections) -> Iterator[str]:
    """The layers of a host that these sections set, each once."""
    found = set()
    for options in merged.values():
        found |= {layer for plugin, option, layer in _LAYERS if options["type"] == plugin and options.get(option)}
        if options["type"] == "sysfs" and any(map(_WORKQUEUES.fullmatch, options)):
            found.add(WORKQUEUES)
        option, off = _NO_INTERRUPTS
        if options["type"] == "scheduler" and options.get(option) in off:
            found.discard(INTERRUPTS)
    yield from (layer for layer in (INTERRUPTS, WORKQUEUES, IRQBALANCE, MANAGER) if layer in found)


def _arguments(merged: _Sections) -> Iterator[str]:
    """The arguments of the kernel that these sections give, in the order of _ARGUMENTS."""
    given = {
        word
        for options in merged.values()
        for name, value in options.items()
        if options["type"] == "bootloader" and name.startswith(_COMMAND_LINE)
        for word, _cpus_of_it in _words(value)
    }
    yield from (name for name in _ARGUMENTS if name in given)


def _words(value: str) -> Iterator[tuple[str, str]]:
    """The arguments of a command line that are about CPUs, each with its value."""
    for word in value.lstrip("+-").split():
        name, _equals, cpus = word.partition("=")
        if name in _ARGUMENTS:
            yield name, cpus


def _chain(tree: Tree, profiles: Sequence[str], files: list[str]) -> Iterator[_Sections]:
    """The sections of these profiles and of all that they include; those that count first come first."""
    waiting = list(reversed(profiles))
    met: set[str] = set()
    while waiting and len(met) < _MOST_PROFILES:
        name = waiting.pop(0)
        path = "" if name in met else _path_of(tree, name)
        met.add(name)
        if path:
            files.append(path)
            sections = _parse(text_at(tree, path))
            yield sections
            # What is a function of tuned names profiles that only it can work out.
            waiting += [
                word for word in re.split(r"[,;\s]+", sections.get("main", {}).get("include", "")) if "$" not in word
            ]


def _path_of(tree: Tree, name: str) -> str:
    if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
        return ""
    paths = (_PROFILE % (directory, name) for directory in _PROFILES)
    return next((path for path in paths if is_there(tree, path)), "")


def _isolated(tree: Tree, chain: Sequence[_Sections]) -> tuple[str, str]:
    """The isolated CPUs as they are written, and the file of variables that has them."""
    for sections in chain:
        text = sections.get("variables", {}).get(_CORES, "")
        # "isolated_cores = ${isolated_cores}" passes on what somebody else sets.
        if text and "${isolated_cores}" not in text:
            return text, ""
    for sections in chain:
        path = sections.get("variables", {}).get("include", "")
        if path.startswith("/"):
            text = _parse(_VARIABLES + text_at(tree, path)).get("variables", {}).get(_CORES, "")
            return text, path
    return "", ""


def _cpus(text: str) -> CPUSet | None:
    try:
        return CPUSet.parse(text) if text else None
    except InputError:
        return None


def _parse(text: str) -> dict[str, dict[str, str]]:
    """{section: {option: value}} as tuned reads its files.

    A comment begins a line or follows a blank, and the last of several equal options counts.
    """
    sections: dict[str, dict[str, str]] = {}
    options: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            options = sections.setdefault(line[1:-1].strip(), {})
        elif line and not line.startswith(("#", ";")) and "=" in line:
            name, _equals, value = line.partition("=")
            options[name.strip()] = re.split(r"(?:^|\s)#", value, maxsplit=1)[0].strip().strip("\"'")
    return sections
