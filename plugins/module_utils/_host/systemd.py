# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd is configured to, as far as its files say: settings of units, of the manager itself, and variables.

Source: systemd.unit(5), systemd.syntax(7), systemd-system.conf(5).
"""

from __future__ import annotations

import json
import os
from typing import Iterable, Iterator, NamedTuple, Sequence

from .._base.command import run_command
from .._base.errors import InputError, NodeError, RefusedError, option
from .._base.tree import Tree
from ..cpuset import CPUSet

# What a service of systemd does not see, as with ProtectHome=, and so cannot run.


# Where a Python is: the program, and the directories that it reads its own modules from.
_PLACES = "import json, os, sys; print(json.dumps([sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)]))"


def check_visible(tree: Tree, interpreter: str, files: Iterable[str], hidden: Sequence[str]) -> None:
    """Raise RefusedError where a service that does not see the hidden directories could not run a program.

    interpreter: the Python; files: the program, and what else it takes. That of a saved node is none of this machine.
    """
    if not os.path.isabs(interpreter):
        raise InputError("%r is not an absolute path" % interpreter, where=option("interpreter"))
    if not hidden:
        return
    for path in files:
        for directory in _above(path, hidden):
            raise _hidden(path, directory, "", "take a path elsewhere")
    remedy = "name a Python elsewhere in %s, such as /usr/bin/python3" % option("interpreter")
    for place in _places(interpreter) if tree.live else [interpreter]:
        for directory in _above(place, hidden):
            what = ", where this Python is" + ("" if place == interpreter else " (%s)" % place)
            raise _hidden(interpreter, directory, what, remedy)


def _places(interpreter: str) -> Iterator[str]:
    """Yield where a Python is. One that is hidden itself need not be run."""
    yield from (interpreter, os.path.realpath(interpreter))
    for place in json.loads(run_command([interpreter, "-I", "-c", _PLACES])):
        yield from (place, os.path.realpath(place))


def _hidden(where: str, directory: str, what: str, remedy: str) -> RefusedError:
    text = "the service does not see what is in %s%s; nothing was written" % (directory, what)
    return RefusedError(text, where=where, remedy=remedy, kind="hidden")


def _above(path: str, directories: Sequence[str]) -> list[str]:
    """Return those of the directories that a path is below."""
    place = os.path.normpath(path) + "/"
    return [directory for directory in directories if place.startswith(directory.rstrip("/") + "/")]


# Where the files of units are, the first one of a name counts.
UNIT_PLACES = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
_MANAGER_PLACES = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd")
MANAGER_SECTION = "[Manager]"
_END, _SERVICE = ".conf", ".service"
# Source: sd_booted(3).
_RUNS = "/run/systemd/system"
_COMMENT = ("#", ";")


class ConfiguredCPUs(NamedTuple):
    """CPUs that files name, and the last file that does. cpus: None where that is no list, such as "numa"."""

    cpus: CPUSet | None
    path: str


def has_systemd(tree: Tree) -> bool:
    """Return whether systemd runs."""
    return tree.exists(_RUNS)


def has_service(tree: Tree, service: str) -> bool:
    """Return whether systemd can start a service of this name, which may lack its ending. Templates and generated units
    count.

    What is read of a kubelet's unit has fewer places: see _kubelet/distributions.py.
    """
    name = service if service.endswith(_SERVICE) else service + _SERVICE
    stem, at, _instance = name.partition("@")
    names = {name, stem + at + _SERVICE} if at else {name}
    return any(tree.exists("%s/%s" % (place, name), follow=False) for place in UNIT_PLACES for name in names)


def services_with(tree: Tree, word: str) -> list[str]:
    """Return the services, without their ending, whose name or unit has this word in it. Templates do not count."""
    found: dict[str, bool] = {}
    for place in UNIT_PLACES:
        try:
            names = tree.names(place)
        except (NodeError, RefusedError):
            continue
        for name in names:
            if name.endswith(_SERVICE) and "@" not in name and name not in found:
                found[name] = word in name or word in _text(tree, "%s/%s" % (place, name))
    return [name[: -len(_SERVICE)] for name in sorted(found) if found[name]]


def unit_settings(tree: Tree, unit: str, name: str) -> list[tuple[str, str]]:
    """Return what each of the files of a unit gives a setting of its own section, in order: (path, value)."""
    return _values(tree, unit_paths(tree, unit), section_of(unit), name)


def section_of(unit: str) -> str:
    """Return the section of a unit that is named after its kind."""
    return "[%s]" % unit.rpartition(".")[2].capitalize()


def unit_paths(tree: Tree, unit: str) -> list[str]:
    """Return the files of a unit, in the order in which they count."""
    kind = unit.rpartition(".")[2]
    paths = [path for path in ("%s/%s" % (place, unit) for place in UNIT_PLACES) if _is_there(tree, path)][:1]
    beside = [place + "/" + directory for place in UNIT_PLACES for directory in _drop_in_directories(unit)]
    beside += ["%s/%s.d" % (place, kind) for place in UNIT_PLACES]
    return [*paths, *_drop_ins(tree, beside)]


def manager_settings(tree: Tree, name: str) -> list[tuple[str, str]]:
    """Return [(file, value)] of a setting of the manager of the system, in the order in which they count."""
    return _values(tree, manager_paths(tree), MANAGER_SECTION, name)


def manager_paths(tree: Tree) -> list[str]:
    """Return the files of the manager of the system, in the order in which they count."""
    paths = [path for path in (place + "/system.conf" for place in _MANAGER_PLACES) if _is_there(tree, path)][:1]
    beside = [place + "/system.conf.d" for place in _MANAGER_PLACES]
    return [*paths, *_drop_ins(tree, beside)]


def merged_cpus(values: list[tuple[str, str]]) -> ConfiguredCPUs | None:
    """Return what lists of CPUs in several places are together; None for none. An empty one takes back all before
    it."""
    found: ConfiguredCPUs | None = None
    for path, value in values:
        words = value.replace(",", " ").replace('"', " ").replace("'", " ").split()
        if not words:
            found = None
            continue
        if words == ["numa"]:
            found = ConfiguredCPUs(None, path)
            continue
        try:
            cpus = CPUSet.parse_plain(",".join(words))
        except InputError:
            # systemd leaves such a line out.
            continue
        before = CPUSet() if found is None or found.cpus is None else found.cpus
        found = ConfiguredCPUs(before | cpus, path)
    return found


def _drop_in_directories(unit: str) -> Iterator[str]:
    """Yield the directories of drop-ins; for a-b.slice: a-b.slice.d and a-.slice.d."""
    yield unit + ".d"
    stem, _dot, kind = unit.rpartition(".")
    while "-" in stem[:-1].strip("-"):
        stem = stem[:-1].rpartition("-")[0] + "-"
        yield "%s.%s.d" % (stem, kind)


def _drop_ins(tree: Tree, directories: list[str]) -> list[str]:
    """Return the drop-in files of all directories by their names; of one name that in the first directory."""
    found: dict[str, str] = {}
    for directory in directories:
        try:
            names = tree.names(directory)
        except (NodeError, RefusedError):
            continue
        for name in names:
            if name.endswith(_END):
                found.setdefault(name, "%s/%s" % (directory, name))
    return [path for _name, path in sorted(found.items())]


def _is_there(tree: Tree, path: str) -> bool:
    try:
        return tree.exists(path)
    except (NodeError, RefusedError):
        return False


def _values(tree: Tree, paths: list[str], section: str, name: str) -> list[tuple[str, str]]:
    return [(path, value) for path in paths for key, value in settings_in(_text(tree, path), section) if key == name]


def _text(tree: Tree, path: str) -> str:
    """Return one that is masked is a link to a device, and says nothing."""
    try:
        return tree.read_bytes(path).decode("utf-8", "surrogateescape")
    except (NodeError, RefusedError):
        return ""


def settings_in(text: str, section: str) -> Iterator[tuple[str, str]]:
    """Yield what one file says in a section, such as "[Service]", in order."""
    found = ""
    for line in _lines(text):
        name, equals, value = line.partition("=")
        if line.startswith("["):
            found = line
        elif equals and found == section:
            yield name.rstrip(), value.strip()


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a unit, each with those in which it goes on. A comment may stand between them."""
    begun = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.lstrip().startswith(_COMMENT):
            continue
        begun += line.lstrip()
        # The last backslash may be the second of two.
        if (len(begun) - len(begun.rstrip("\\"))) % 2:
            begun = begun[:-1] + " "
            continue
        yield begun.strip()
        begun = ""
    yield begun.strip()
