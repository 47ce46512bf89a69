# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NRI and CDI in the configuration of a node's container runtime: whether they are on, and which file says so.

Source: docs/NRI.md and cmd/containerd/server/config/config.go in containerd, whose 1.x replaces all of a plugin's
table by that of an imported file and whose 2.x merges them by keys; crio.conf(5) and crio.conf.d(5) of CRI-O;
docs/user/installation.md in dra-driver-cpu for the versions from which both are on by default.
"""

from __future__ import annotations

import fnmatch
import posixpath
from typing import Any, Mapping, NamedTuple

from ...errors import NodeError
from ...tree import Tree
from .runtimes import CRIO, Runtime
from .toml_lines import Document, TOMLError, parse

# The kind of the errors about a runtime's configuration.
KIND = "runtime_config"

NRI_SOCKET = "/var/run/nri/nri.sock"
_DEFAULT_CDI = ("/etc/cdi", "/var/run/cdi")

_NRI_PLUGIN = "io.containerd.nri.v1.nri"
_CRI_PLUGINS = ("cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
# By the version of a file of containerd, the tables of NRI and of CDI.
TABLES: Mapping[int, tuple[tuple[str, str], tuple[str, str]]] = {
    1: (("plugins", "nri"), ("plugins", _CRI_PLUGINS[0])),
    2: (("plugins", _NRI_PLUGIN), ("plugins", _CRI_PLUGINS[1])),
    3: (("plugins", _NRI_PLUGIN), ("plugins", _CRI_PLUGINS[2])),
    4: (("plugins", _NRI_PLUGIN), ("plugins", _CRI_PLUGINS[2])),
}
CRIO_NRI, CRIO_RUNTIME = ("crio", "nri"), ("crio", "runtime")
# The first versions in which both are on unless the configuration says otherwise.
_ON_BY_DEFAULT = {False: (2, 0), True: (1, 30)}

_MOST_FILES = 200


class Flag(NamedTuple):
    """Whether something is on, and the file that says so; empty where it is the default."""

    on: bool
    where: str = ""


class State(NamedTuple):
    """What the configuration says. nri: also for plugins that connect from outside, as the driver does."""

    nri: Flag
    cdi: Flag
    socket: str = NRI_SOCKET
    spec_dirs: tuple[str, ...] = _DEFAULT_CDI

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        return {
            "nri": self.nri.on,
            "nri_source": self.nri.where,
            "cdi": self.cdi.on,
            "cdi_source": self.cdi.where,
            "nri_socket": self.socket,
            "cdi_spec_dirs": list(self.spec_dirs),
        }


class ConfigFile(NamedTuple):
    """A file of the configuration, and what it says."""

    path: str
    text: str
    document: Document

    def version(self) -> int:
        """That of a file of containerd, which counts as 1 where it says none."""
        version = self.document.value(("version",))
        return version if isinstance(version, int) and not isinstance(version, bool) and version else 1

    def tables(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Where a file of containerd of this version has NRI and CDI."""
        return TABLES[min(max(self.version(), 1), max(TABLES))]


def read_state(tree: Tree, runtime: Runtime) -> State:
    """What the configuration says. Raises NodeError for files that cannot be read or understood."""
    files = read_files(tree, runtime)
    return _crio_state(runtime, files) if runtime.kind == CRIO else _containerd_state(runtime, files)


def read_files(tree: Tree, runtime: Runtime) -> list[ConfigFile]:
    """The files in the order in which the runtime reads them: what the last says counts. Raises NodeError."""
    pending = [runtime.config] if tree.exists(runtime.config) else []
    if runtime.drop_ins:
        pending += tree.files_below(runtime.drop_ins)
    files: list[ConfigFile] = []
    seen: set[str] = set()
    while pending:
        path = pending.pop(0)
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > _MOST_FILES:
            raise NodeError("takes more than %d files" % _MOST_FILES, where=tree.path(runtime.config), kind=KIND)
        file = _read_file(tree, path)
        files.append(file)
        if runtime.kind != CRIO:
            for pattern in strings(file.document.value(("imports",))):
                pending += _matches(tree, posixpath.normpath(posixpath.join(posixpath.dirname(path), pattern)))
    return files


def _matches(tree: Tree, pattern: str) -> list[str]:
    directory, name = posixpath.split(pattern)
    if not is_pattern(pattern):
        return [pattern] if tree.exists(pattern) else []
    if is_pattern(directory):
        raise NodeError("imports %s, and patterns of directories are not read here" % pattern, kind=KIND)
    return [posixpath.join(directory, found) for found in fnmatch.filter(tree.names(directory), name)]


def is_pattern(path: str) -> bool:
    """Whether it stands for files by their names."""
    return any(mark in path for mark in "*?[")


def _read_file(tree: Tree, path: str) -> ConfigFile:
    text = tree.read_text(path)
    try:
        return ConfigFile(path, text, parse(text))
    except TOMLError as error:
        raise not_understood(tree, path, error) from error


def not_understood(tree: Tree, path: str, error: TOMLError) -> NodeError:
    """What to say of a file that is no TOML, or has damaged marks."""
    return NodeError(
        "cannot be understood: %s; nothing was changed" % error,
        where=tree.path(path),
        remedy="correct it, and look what the runtime itself makes of it",
        kind=KIND,
    )


def strings(value: Any) -> list[str]:
    """The strings of a list; none where it is no list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def merges(runtime: Runtime, files: list[ConfigFile]) -> bool:
    """Whether containerd takes a key of an imported file without the rest of its table, as 2.x does."""
    if runtime.version is not None:
        return runtime.version >= _ON_BY_DEFAULT[False]
    # No 1.x reads a file of this version.
    return bool(files) and files[0].version() >= 3


def disabling_file(files: list[ConfigFile]) -> str:
    """The file that keeps containerd from loading a plugin that is needed; empty for none."""
    needed = {_NRI_PLUGIN, "nri", *_CRI_PLUGINS}
    for file in files:
        if needed.intersection(strings(file.document.value(("disabled_plugins",)))):
            return file.path
    return ""


def _containerd_state(runtime: Runtime, files: list[ConfigFile]) -> State:
    is_merged = merges(runtime, files)
    is_on = is_merged

    def found(which: int, key: str) -> tuple[Any, str]:
        """The value of a key of NRI's (0) or CDI's (1) table that counts, and the file it is in."""
        value, where = None, ""
        for file in files:
            table = file.tables()[which]
            own = file.document.value((*table, key))
            if own is not None or (not is_merged and file.document.defines(table)):
                value, where = own, file.path
        return value, where

    nri = _flag(found(0, "disable"), is_on, inverted=True)
    unconnected, where = found(0, "disable_connections")
    if nri.on and unconnected is True:
        nri = Flag(False, where)
    cdi = _flag(found(1, "enable_cdi"), is_on)
    disabled = disabling_file(files)
    if disabled:
        nri, cdi = Flag(False, disabled), Flag(False, disabled)
    return State(nri, cdi, *_places(found(0, "socket_path")[0], found(1, "cdi_spec_dirs")[0]))


def _crio_state(runtime: Runtime, files: list[ConfigFile]) -> State:
    def found(path: tuple[str, ...]) -> tuple[Any, str]:
        given = [(file.document.value(path), file.path) for file in files if file.document.value(path) is not None]
        return given[-1] if given else (None, "")

    is_on = runtime.version is not None and runtime.version >= _ON_BY_DEFAULT[True]
    nri = _flag(found((*CRIO_NRI, "enable_nri")), is_on)
    unconnected, where = found((*CRIO_NRI, "nri_disable_connections"))
    if nri.on and unconnected is True:
        nri = Flag(False, where)
    directories, where = found((*CRIO_RUNTIME, "cdi_spec_dirs"))
    cdi = Flag(directories is None or bool(strings(directories)), where)
    return State(nri, cdi, *_places(found((*CRIO_NRI, "nri_listen"))[0], directories))


def _places(socket: Any, directories: Any) -> tuple[str, tuple[str, ...]]:
    given = strings(directories)
    return socket if isinstance(socket, str) and socket else NRI_SOCKET, tuple(given) if given else _DEFAULT_CDI


def _flag(found: tuple[Any, str], default: bool, inverted: bool = False) -> Flag:
    value, where = found
    if not isinstance(value, bool):
        return Flag(default, "" if value is None else where)
    return Flag(value != inverted, where)
