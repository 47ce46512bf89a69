# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The smallest change of a container runtime's configuration that turns NRI and CDI on, and what takes it away again.

That is a file of our own in a directory that the runtime reads anyway; where a file of somebody else has the last word,
a marked block in it; and for k3s and RKE2, which write containerd's file anew at each start, a template that adds to
theirs. Sources: as in runtime_files.py, and docs/advanced.md of k3s.
"""

from __future__ import annotations

import posixpath
from typing import Iterator, Mapping

from .._base.errors import RefusedError
from .._base.toml import TOMLError, header, table_text, with_keys, without_blocks
from .._base.tree import OverlaidTree, Tree
from .runtime_files import (
    CRIO,
    CRIO_NRI,
    CRIO_RUNTIME,
    KIND,
    TABLES,
    ConfigFile,
    Runtime,
    RuntimeState,
    disabling_file,
    is_pattern,
    merges,
    not_understood,
    read_files,
    read_state,
    strings,
)

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
    """What turns on those that are wanted: {path on the node: the new content}. Empty where they are on.

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
    """What takes away all that plan() has written: {path on the node: the content without it, None for no file}."""
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
    """What is wanted and off."""
    rows = ((NRI, nri, state.nri), (CDI, cdi, state.cdi))
    return tuple(name for name, wanted, flag in rows if wanted and not flag.on)


def _check_version(tree: Tree, runtime: Runtime, files: list[ConfigFile]) -> None:
    """Raises RefusedError where no configuration can turn them on."""
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
    """The keys that turn on what is missing."""
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
    """Changes that may turn on what is missing: a file of our own, then blocks in the files that say otherwise."""
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
    """A directory of which the file imports every *.toml; empty for none."""
    for pattern in strings(file.document.value(("imports",))):
        directory, name = posixpath.split(pattern)
        if posixpath.isabs(directory) and name in ("*.toml", "*") and not is_pattern(directory):
            return directory
    return ""


def _blocks(tree: Tree, runtime: Runtime, files: list[ConfigFile], missing: tuple[str, ...]) -> dict[str, bytes | None]:
    """Each table in the last file that has it, or in the main one. Raises RefusedError."""
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
    """What they make containerd's file of where it is there, that of containerd 2 first."""
    if not runtime.template:
        return []
    return [posixpath.join(runtime.template, name) for name in ("config-v3.toml.tmpl", "config.toml.tmpl")]


def _template(
    tree: Tree, runtime: Runtime, files: list[ConfigFile], missing: tuple[str, ...]
) -> dict[str, bytes | None]:
    """A template that adds tables to what they write by themselves. Raises RefusedError."""
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
