# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NRI and CDI in the configuration of a node's container runtime: whether they are on, and what turns them on and off.

The smallest change is a file of our own in a directory that the runtime reads anyway; where a file of somebody else has
the last word, a marked block in it; and for k3s and RKE2, which write containerd's file anew at each start, a template
that adds to theirs.

Source: docs/NRI.md and cmd/containerd/server/config/config.go in containerd, whose 1.x replaces all of a plugin's
table by that of an imported file and whose 2.x merges them by keys; crio.conf(5) and crio.conf.d(5) of CRI-O;
docs/user/installation.md in dra-driver-cpu for the versions from which both are on by default; docs/advanced.md of k3s.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
from contextlib import suppress
from typing import AbstractSet, Any, Iterator, Mapping, NamedTuple

from .._base.command import Run, run_command
from .._base.errors import InputError, NodeError, RefusedError
from .._base.toml import Document, TOMLError, header, parse, table_text, with_keys, without_blocks
from .._base.tree import OverlaidTree, Tree
from .._cgroup.kubepods import CGROUPFS, SYSTEMD
from .._owners.owners import ALLOWED, KEY, PINNED, SHARED, WITH_ANNOTATIONS

# Which container runtime a node's kubelet uses, where its configuration is, and what has to be restarted for it.


CONTAINERD, CRIO = "containerd", "CRI-O"

_VERSION = re.compile(r"\bv?(\d{1,4})\.(\d{1,4})\b")
_RANCHER = "/var/lib/rancher/%s/agent/etc/containerd"
_MICROK8S = "/var/snap/microk8s/"


class Runtime(NamedTuple):
    """kind: CONTAINERD or CRIO. config: its main file. service: what restarts it; empty where the kubelet's own does.

    version: major and minor; None where it is not known. drop_ins: the directory of which CRI-O reads every file.
    template: the directory of the templates of which k3s and RKE2 make `config` anew at each start.
    """

    kind: str
    config: str
    service: str
    version: tuple[int, int] | None = None
    drop_ins: str = ""
    template: str = ""
    programs: tuple[str, ...] = ()

    def version_text(self) -> str:
        """Return the version as "1.7"; empty where it is not known."""
        return "" if self.version is None else "%d.%d" % self.version


def find_runtime(tree: Tree, endpoint: str | None, distribution: str = "", version: str | None = None) -> Runtime:
    """Return the runtime behind a kubelet's endpoint; None is the kubelet's default. distribution: by its name.

    Raises RefusedError for one without NRI, and InputError for a version that is none.
    """
    runtime = _by_endpoint(tree, endpoint or "", distribution)
    return runtime._replace(version=runtime_version(version) if version else None)


def _by_endpoint(tree: Tree, endpoint: str, distribution: str) -> Runtime:
    if "cri-dockerd" in endpoint or "dockershim" in endpoint:
        raise RefusedError(
            "Docker has no NRI, which a DRA driver for CPUs needs",
            where=endpoint,
            remedy="move the node to containerd or CRI-O",
            kind="runtime_config",
        )
    if "/run/k0s/" in endpoint:
        raise RefusedError(
            "k0s makes the configuration of containerd itself",
            where=endpoint,
            remedy="add the tables of NRI and CDI to a file in /etc/k0s/containerd.d",
            kind="runtime_config",
        )
    is_crio = "crio" in endpoint or (not endpoint and _only_crio(tree))
    if is_crio:
        return Runtime(CRIO, "/etc/crio/crio.conf", "crio", drop_ins="/etc/crio/crio.conf.d", programs=("crio",))
    if "/run/k3s/" in endpoint:
        name = "rke2" if distribution == "RKE2" else "k3s"
        directory = _RANCHER % name
        program = "/var/lib/rancher/%s/data/current/bin/containerd" % name
        return Runtime(CONTAINERD, directory + "/config.toml", "", template=directory, programs=(program, CONTAINERD))
    if _MICROK8S in endpoint:
        # At each start containerd.toml is made of it.
        config = _MICROK8S + "current/args/containerd-template.toml"
        return Runtime(CONTAINERD, config, "snap.microk8s.daemon-containerd", programs=())
    return Runtime(CONTAINERD, "/etc/containerd/config.toml", CONTAINERD, programs=(CONTAINERD,))


def _only_crio(tree: Tree) -> bool:
    return tree.exists("/etc/crio") and not tree.exists("/etc/containerd")


def with_version(tree: Tree, runtime: Runtime, run: Run = run_command) -> Runtime:
    """Return the runtime with its version, as its program says it on a live node; not known where that fails."""
    if runtime.version is not None or not tree.live:
        return runtime
    for program in runtime.programs:
        with suppress(NodeError, InputError):
            return runtime._replace(version=runtime_version(run([program, "--version"])))
    return runtime


def runtime_version(text: str) -> tuple[int, int]:
    """Return (1, 7) of "1.7.22", or of what the program says of its version. Raises InputError."""
    match = _VERSION.search(text)
    if match is None:
        raise InputError("%r is no version of a container runtime" % text[:80], remedy="give one such as 1.7.22")
    return int(match.group(1)), int(match.group(2))


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


class RuntimeSwitch(NamedTuple):
    """Whether something is on, and the file that says so; empty where it is the default."""

    on: bool
    where: str = ""


class RuntimeState(NamedTuple):
    """What the configuration says. nri: also for plugins that connect from outside, as the driver does."""

    nri: RuntimeSwitch
    cdi: RuntimeSwitch
    socket: str = NRI_SOCKET
    spec_dirs: tuple[str, ...] = _DEFAULT_CDI

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
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
        """Return that of a file of containerd, which counts as 1 where it says none."""
        version = self.document.value(("version",))
        return version if isinstance(version, int) and not isinstance(version, bool) and version else 1

    def tables(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return where a file of containerd of this version has NRI and CDI."""
        return TABLES[min(max(self.version(), 1), max(TABLES))]


def read_state(tree: Tree, runtime: Runtime) -> RuntimeState:
    """Return what the configuration says. Raises NodeError for files that cannot be read or understood."""
    files = read_files(tree, runtime)
    return _crio_state(runtime, files) if runtime.kind == CRIO else _containerd_state(runtime, files)


def read_files(tree: Tree, runtime: Runtime) -> list[ConfigFile]:
    """Return the files in the order in which the runtime reads them: what the last says counts. Raises NodeError."""
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
    """Return whether it stands for files by their names."""
    return any(mark in path for mark in "*?[")


def _read_file(tree: Tree, path: str) -> ConfigFile:
    text = tree.read_text(path)
    try:
        return ConfigFile(path, text, parse(text))
    except TOMLError as error:
        raise not_understood(tree, path, error) from error


def not_understood(tree: Tree, path: str, error: TOMLError) -> NodeError:
    """Return what to say of a file that is no TOML, or has damaged marks."""
    return NodeError(
        "cannot be understood: %s; nothing was changed" % error,
        where=tree.path(path),
        remedy="correct it, and look what the runtime itself makes of it",
        kind=KIND,
    )


def strings(value: Any) -> list[str]:
    """Return the strings of a list; none where it is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def merges(runtime: Runtime, files: list[ConfigFile]) -> bool:
    """Return whether containerd takes a key of an imported file without the rest of its table, as 2.x does."""
    if runtime.version is not None:
        return runtime.version >= _ON_BY_DEFAULT[False]
    # No 1.x reads a file of this version.
    return bool(files) and files[0].version() >= 3


def disabling_file(files: list[ConfigFile]) -> str:
    """Return the file that keeps containerd from loading a plugin that is needed; empty for none."""
    needed = {_NRI_PLUGIN, "nri", *_CRI_PLUGINS}
    for file in files:
        if needed.intersection(strings(file.document.value(("disabled_plugins",)))):
            return file.path
    return ""


def _containerd_state(runtime: Runtime, files: list[ConfigFile]) -> RuntimeState:
    is_merged = merges(runtime, files)
    is_on = is_merged

    def found(which: int, key: str) -> tuple[Any, str]:
        """Return the value of a key of NRI's (0) or CDI's (1) table that counts, and the file it is in."""
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
        nri = RuntimeSwitch(False, where)
    cdi = _flag(found(1, "enable_cdi"), is_on)
    disabled = disabling_file(files)
    if disabled:
        nri, cdi = RuntimeSwitch(False, disabled), RuntimeSwitch(False, disabled)
    return RuntimeState(nri, cdi, *_places(found(0, "socket_path")[0], found(1, "cdi_spec_dirs")[0]))


def _crio_state(runtime: Runtime, files: list[ConfigFile]) -> RuntimeState:
    def found(path: tuple[str, ...]) -> tuple[Any, str]:
        given = [(file.document.value(path), file.path) for file in files if file.document.value(path) is not None]
        return given[-1] if given else (None, "")

    is_on = runtime.version is not None and runtime.version >= _ON_BY_DEFAULT[True]
    nri = _flag(found((*CRIO_NRI, "enable_nri")), is_on)
    unconnected, where = found((*CRIO_NRI, "nri_disable_connections"))
    if nri.on and unconnected is True:
        nri = RuntimeSwitch(False, where)
    directories, where = found((*CRIO_RUNTIME, "cdi_spec_dirs"))
    cdi = RuntimeSwitch(directories is None or bool(strings(directories)), where)
    return RuntimeState(nri, cdi, *_places(found((*CRIO_NRI, "nri_listen"))[0], directories))


def _places(socket: Any, directories: Any) -> tuple[str, tuple[str, ...]]:
    given = strings(directories)
    return socket if isinstance(socket, str) and socket else NRI_SOCKET, tuple(given) if given else _DEFAULT_CDI


def _flag(found: tuple[Any, str], default: bool, inverted: bool = False) -> RuntimeSwitch:
    value, where = found
    if not isinstance(value, bool):
        return RuntimeSwitch(default, "" if value is None else where)
    return RuntimeSwitch(value != inverted, where)


# What is read here of a container runtime's file, as a file of its own: without the rest, which may hold passwords of
# registries.


# By which driver the runtime makes the cgroups of containers.
#
# Its source: SystemdCgroup in docs/cri/config.md of containerd, cgroup_manager in crio.conf(5), dockerd(8).


_SYSTEMD_CGROUP = ("containerd", "runtimes", "runc", "options", "SystemdCgroup")
_CRIO_MANAGER = "cgroup_manager"
_DOCKER, _DOCKER_OPTION = "/etc/docker/daemon.json", "native.cgroupdriver="


class CgroupDriver(NamedTuple):
    """A runtime's driver, SYSTEMD or CGROUPFS, and what sets it: a key and a file, or the file that does not."""

    name: str
    origin: str


def cgroup_driver(tree: Tree, runtime: Runtime) -> CgroupDriver | None:
    """Return by which driver containerd's runc, or CRI-O, makes cgroups; None where no file of the runtime's is there.

    k3s and RKE2 give both their own. Raises NodeError for files that cannot be read or understood.
    """
    files = [] if runtime.template else read_files(tree, runtime)
    found: tuple[Any, str] | None = None
    for file in files:
        key = (*CRIO_RUNTIME, _CRIO_MANAGER) if runtime.kind == CRIO else (*file.tables()[1], *_SYSTEMD_CGROUP)
        value = file.document.value(key)
        found = (value, file.path) if value is not None else found
    if not files:
        return None
    if found is None:
        return CgroupDriver(SYSTEMD if runtime.kind == CRIO else CGROUPFS, "the default, beside %s" % files[0].path)
    value, path = found
    if runtime.kind == CRIO:
        return CgroupDriver(str(value), "%s in %s" % (_CRIO_MANAGER, path))
    return CgroupDriver(SYSTEMD if value is True else CGROUPFS, "%s in %s" % (_SYSTEMD_CGROUP[-1], path))


def docker_driver(tree: Tree) -> CgroupDriver | None:
    """Return by which driver dockerd makes cgroups, where its file says so; None else."""
    try:
        given = json.loads(tree.read_text(_DOCKER)) if tree.exists(_DOCKER) else {}
    except ValueError:
        return None  # dockerd does not start with it either
    options = strings(given.get("exec-opts")) if isinstance(given, dict) else []
    names = [option[len(_DOCKER_OPTION) :] for option in options if option.startswith(_DOCKER_OPTION)]
    return CgroupDriver(names[-1], "exec-opts in %s" % _DOCKER) if names else None


_TOP_KEYS = {("version",), ("imports",), ("disabled_plugins",)}
_BARE = re.compile("[A-Za-z0-9_-]+")
_PLUGINS = {table for tables in TABLES.values() for table in tables}
_KEYS_OF: Mapping[Any, AbstractSet[str]] = {
    **{plugin: {"disable", "disable_connections", "socket_path", "enable_cdi", "cdi_spec_dirs"} for plugin in _PLUGINS},
    CRIO_NRI: {"enable_nri", "nri_disable_connections", "nri_listen"},
    CRIO_RUNTIME: {"cdi_spec_dirs", SHARED[-1], _CRIO_MANAGER},
    **{(*plugin, *_SYSTEMD_CGROUP[:-1]): {_SYSTEMD_CGROUP[-1]} for plugin in _PLUGINS},
}


def essence(text: str) -> str:
    """Return the keys that RuntimeState and _owners/owners.py read, with their values.

    Raises TOMLError for what is no TOML.
    """
    document = parse(text)
    # In containerd 1.x a table counts even where it is empty.
    tables: dict[tuple[str, ...], dict[str, Any]] = {(): {}}
    tables.update({plugin: {} for plugin in sorted(_PLUGINS) if document.defines(plugin)})
    for path, entry in document.entries.items():
        for key, value in _leaves(path, entry.value):
            if _is_read(key) and _is_plain(value):
                tables.setdefault(key[:-1], {})[key[-1]] = value
    lines = []
    for table, keys in tables.items():
        lines += ["[%s]" % ".".join(map(_key, table))] if table else []
        lines += ["%s = %s" % (_key(key), _toml(value)) for key, value in keys.items()]
    return "".join(line + "\n" for line in lines)


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a key, or those in the inline table that is its value."""
    if not isinstance(value, dict):
        yield path, value
        return
    for name, inner in value.items():
        yield from _leaves((*path, name), inner)


def _is_read(key: tuple[str, ...]) -> bool:
    if key in _TOP_KEYS or key[-1] in _KEYS_OF.get(key[:-1], frozenset()):
        return True
    is_pinned = key[:3] in WITH_ANNOTATIONS and key[4:] == PINNED
    return key[-1] == KEY or is_pinned or (key[:3] in WITH_ANNOTATIONS and key[-1] == ALLOWED)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, (str, int)) for item in value)
    return isinstance(value, (str, int))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: Any) -> str:
    """Return a value as TOML, whose strings, numbers and lists of these are also JSON's."""
    return json.dumps(value, ensure_ascii=False)


# The first line of a file that is ours as a whole, and of a template, from which it does not get into the file.
_WRITTEN = "Written by kubenode.cpu_manager, which removes it again: NRI and CDI for a DRA driver."
OWN = "# %s\n" % _WRITTEN
OWN_TEMPLATE = "{{/* %s */}}\n" % _WRITTEN
NAME = "99-kubenode-cpu-manager"
NRI, CDI = "nri", "cdi"

# {table: {key: its value as TOML writes it}}
_Keys = Mapping["tuple[str, ...]", Mapping[str, str]]

# The first versions that have both.
_FIRST = {False: (1, 7), True: (1, 26)}
_BASE = '{{ template "base" . }}\n\n'


def plan(tree: Tree, runtime: Runtime, nri: bool = True, cdi: bool = True) -> dict[str, bytes | None]:
    """Return what turns on those that are wanted: {path on the node: the new content}. Empty where they are on.

    Raises RefusedError with the lines to add where this cannot be done here, and as read_state() does.
    """
    if not _missing(read_state(tree, runtime), nri, cdi):
        return {}
    # What was written here before is planned anew, together with the rest.
    base = OverlaidTree(tree, plan_absent(tree, runtime))
    missing = _missing(read_state(base, runtime), nri, cdi)
    files = read_files(base, runtime)
    _check_version(base, runtime, files)
    for proposal in _proposals(base, runtime, files, missing):
        if not _missing(read_state(OverlaidTree(base, proposal), runtime), nri, cdi):
            contents = {**base.contents, **proposal}
            break
    else:
        contents = {**base.contents, **_template(base, runtime, files, missing)}
    return {path: new for path, new in contents.items() if new != tree.content(path)}


def plan_absent(tree: Tree, runtime: Runtime) -> dict[str, bytes | None]:
    """Return what takes away all that plan() has written: {path on the node: the content without it, None for no
    file}."""
    contents: dict[str, bytes | None] = {}
    paths = [file.path for file in read_files(tree, runtime)]
    for path in [*paths, *(path for path in _templates(runtime) if tree.exists(path))]:
        text = tree.read_text(path)
        if text.startswith((OWN, OWN_TEMPLATE)):
            contents[path] = None
            continue
        try:
            plain = without_blocks(text)
        except TOMLError as error:
            raise not_understood(tree, path, error) from error
        if plain != text:
            contents[path] = plain.encode("utf-8")
    return contents


def _missing(state: RuntimeState, nri: bool, cdi: bool) -> tuple[str, ...]:
    """Return what is wanted and off."""
    rows = ((NRI, nri, state.nri), (CDI, cdi, state.cdi))
    return tuple(name for name, wanted, flag in rows if wanted and not flag.on)


def _check_version(tree: Tree, runtime: Runtime, files: list[ConfigFile]) -> None:
    """Raise RefusedError where no configuration can turn them on."""
    first = _FIRST[runtime.kind == CRIO]
    if runtime.version is not None and runtime.version < first:
        raise RefusedError(
            "%s %d.%d has no NRI and CDI that a DRA driver could use" % (runtime.kind, *runtime.version),
            where=tree.path(runtime.config),
            remedy="install %s %d.%d or later" % (runtime.kind, *first),
            kind=KIND,
        )
    if runtime.kind == CRIO:
        return
    if files and not 0 < files[0].version() <= max(TABLES):
        raise RefusedError(
            "is of version %d, and what that means is not known here" % files[0].version(),
            where=tree.path(runtime.config),
            remedy="turn on NRI and CDI by hand",
            kind=KIND,
        )
    disabled = disabling_file(files)
    if disabled:
        raise RefusedError(
            "disabled_plugins keeps containerd from loading the plugin of NRI or CDI",
            where=tree.path(disabled),
            remedy="remove the plugin from the list",
            kind=KIND,
        )


def _wanted(
    runtime: Runtime, files: list[ConfigFile], missing: tuple[str, ...]
) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the keys that turn on what is missing."""
    if runtime.kind == CRIO:
        nri_table, cdi_table = CRIO_NRI, CRIO_RUNTIME
        on, unconnected = {"enable_nri": "true"}, "nri_disable_connections"
        cdi_keys = {"cdi_spec_dirs": '["/etc/cdi", "/var/run/cdi"]'}
    else:
        nri_table, cdi_table = files[0].tables() if files else TABLES[2]
        on, unconnected, cdi_keys = {"disable": "false"}, "disable_connections", {"enable_cdi": "true"}
    if any(file.document.value((*nri_table, unconnected)) is True for file in files):
        on[unconnected] = "false"
    wanted: dict[tuple[str, ...], dict[str, str]] = {nri_table: on} if NRI in missing else {}
    if CDI in missing:
        wanted[cdi_table] = cdi_keys
    return wanted


def _proposals(
    tree: Tree, runtime: Runtime, files: list[ConfigFile], missing: tuple[str, ...]
) -> Iterator[dict[str, bytes | None]]:
    """Yield changes that may turn on what is missing: a file of our own, then blocks in the files that say
    otherwise."""
    wanted = _wanted(runtime, files, missing)
    if runtime.kind == CRIO:
        yield {posixpath.join(runtime.drop_ins, NAME + ".conf"): _own("", wanted)}
        return
    if not files:
        if not runtime.template:
            yield {runtime.config: _own("version = 2\n\n", wanted)}
        return
    directory = _imported_directory(files[0])
    is_defined = any(file.document.defines(table) for file in files for table in wanted)
    # Where 1.x imports a table, it forgets the same table of all files before.
    if directory and (merges(runtime, files) or not is_defined):
        version = files[0].version()
        yield {posixpath.join(directory, NAME + ".toml"): _own("version = %d\n\n" % version * (version > 1), wanted)}
    if not runtime.template:
        yield _blocks(tree, runtime, files, missing)


def _own(version: str, wanted: _Keys) -> bytes:
    return (OWN + version + table_text(wanted)).encode("utf-8")


def _imported_directory(file: ConfigFile) -> str:
    """Return a directory of which the file imports every *.toml; empty for none."""
    for pattern in strings(file.document.value(("imports",))):
        directory, name = posixpath.split(pattern)
        if posixpath.isabs(directory) and name in ("*.toml", "*") and not is_pattern(directory):
            return directory
    return ""


def _blocks(tree: Tree, runtime: Runtime, files: list[ConfigFile], missing: tuple[str, ...]) -> dict[str, bytes | None]:
    """Return each table in the last file that has it, or in the main one. Raises RefusedError."""
    by_file: dict[str, dict[tuple[str, ...], Mapping[str, str]]] = {}
    for table, keys in _wanted(runtime, files, missing).items():
        having = [file.path for file in files if file.document.defines(table)]
        by_file.setdefault(having[-1] if having else files[0].path, {})[table] = keys
    texts = {file.path: file.text for file in files}
    try:
        return {path: with_keys(texts[path], keys).encode("utf-8") for path, keys in by_file.items()}
    except TOMLError as error:
        raise _refused(tree, runtime, files, missing, "cannot be changed here: %s" % error) from error


# --- k3s and RKE2 -------------------------------------------------------------------------------------------------


def _templates(runtime: Runtime) -> list[str]:
    """Return what they make containerd's file of where it is there, that of containerd 2 first."""
    if not runtime.template:
        return []
    return [posixpath.join(runtime.template, name) for name in ("config-v3.toml.tmpl", "config.toml.tmpl")]


def _template(
    tree: Tree, runtime: Runtime, files: list[ConfigFile], missing: tuple[str, ...]
) -> dict[str, bytes | None]:
    """Return a template that adds tables to what they write by themselves. Raises RefusedError."""
    if not runtime.template:
        raise _refused(tree, runtime, files, missing, "says otherwise in a way that no addition changes")
    if not files:
        raise _refused(tree, runtime, files, missing, "is not there yet: the service writes it at its first start")
    newer, older = _templates(runtime)
    for template in (newer, older):
        if tree.exists(template):
            raise _refused(tree, runtime, files, missing, "is made of %s, which is not ours" % template)
    wanted = _wanted(runtime, files, missing)
    for table in wanted:
        # What our own template added is in the file that was made of it.
        if table in files[0].document.tables:
            raise _refused(
                tree, runtime, files, missing, "has [%s] already, and a template can only add tables" % header(table)
            )
    path = newer if files[0].version() >= 3 else older
    return {path: (OWN_TEMPLATE + _BASE + table_text(wanted)).encode("utf-8")}


def _refused(
    tree: Tree, runtime: Runtime, files: list[ConfigFile], missing: tuple[str, ...], what: str
) -> RefusedError:
    lines = "; ".join(
        "[%s] %s" % (header(table), ", ".join("%s = %s" % pair for pair in keys.items()))
        for table, keys in _wanted(runtime, files, missing).items()
    )
    state = read_state(tree, runtime)
    source = next((flag.where for flag in (state.nri, state.cdi) if not flag.on and flag.where), runtime.config)
    return RefusedError(
        what + "; nothing was changed",
        where=tree.path(source),
        remedy="set by hand, in %s: %s" % (" or ".join(_templates(runtime)) or "it or a file that it imports", lines),
        kind=KIND,
    )
