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
from ..look import is_there, text_at

ACTIVE_PROFILE, PROFILE_MODE = "/etc/tuned/active_profile", "/etc/tuned/profile_mode"
# The first that has a profile counts.
_PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_PROFILE = "%s/%s/tuned.conf"
# Options by which a profile moves what is not its CPUs' work off them: (section, option).
_ISOLATING = (("scheduler", "isolated_cores"), ("systemd", "cpu_affinity"), ("irqbalance", "banned_cpus"))
_CORES = "isolated_cores"
# A file of variables has no sections.
_VARIABLES = "[variables]\n"
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
    """

    profiles: tuple[str, ...]
    mode: str
    isolates: bool
    isolated_text: str
    isolated: CPUSet | None
    variables: str
    files: tuple[str, ...]


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
    return Tuned(
        profiles,
        text_at(tree, PROFILE_MODE).strip(),
        isolates,
        text,
        _cpus(text),
        variables,
        (*files, *([variables] if variables else [])),
    )


def essence(text: str) -> str:
    """What is read here of a profile's file, or of a file of variables, as a file of its own."""
    read = {("main", "include"), ("variables", "include"), ("variables", _CORES), *_ISOLATING}
    lines = []
    for section, options in _parse(_VARIABLES + text).items():
        found = ["%s=%s\n" % (name, value) for name, value in options.items() if (section, name) in read]
        lines += ["[%s]\n" % section, *found] if found else []
    return "".join(lines)


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
    """{section: {option: value}} as tuned reads its files: comments begin a line, and later options win."""
    sections: dict[str, dict[str, str]] = {}
    options: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            options = sections.setdefault(line[1:-1].strip(), {})
        elif line and not line.startswith(("#", ";")) and "=" in line:
            name, _equals, value = line.partition("=")
            options[name.strip()] = value.strip().strip("\"'")
    return sections
