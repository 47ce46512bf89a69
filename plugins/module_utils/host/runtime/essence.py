# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read here of a container runtime's file, as a file of its own: without the rest, which may hold passwords of
registries."""

from __future__ import annotations

import json
import re
from typing import AbstractSet, Any, Iterator, Mapping

from ..owner.crio import ALLOWED, SHARED, WITH_ANNOTATIONS
from ..owner.goresctrl import KEY
from .state import CRIO_NRI, CRIO_RUNTIME, TABLES
from .toml_lines import parse

_TOP_KEYS = {("version",), ("imports",), ("disabled_plugins",)}
_BARE = re.compile("[A-Za-z0-9_-]+")
_PLUGINS = {table for tables in TABLES.values() for table in tables}
_KEYS_OF: Mapping[Any, AbstractSet[str]] = {
    **{plugin: {"disable", "disable_connections", "socket_path", "enable_cdi", "cdi_spec_dirs"} for plugin in _PLUGINS},
    CRIO_NRI: {"enable_nri", "nri_disable_connections", "nri_listen"},
    CRIO_RUNTIME: {"cdi_spec_dirs", SHARED[-1]},
}


def essence(text: str) -> str:
    """The keys that state.py, owner/crio.py and owner/goresctrl.py read, with their values.

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
    """A key, or those in the inline table that is its value."""
    if not isinstance(value, dict):
        yield path, value
        return
    for name, inner in value.items():
        yield from _leaves((*path, name), inner)


def _is_read(key: tuple[str, ...]) -> bool:
    if key in _TOP_KEYS or key[-1] in _KEYS_OF.get(key[:-1], frozenset()):
        return True
    return key[-1] == KEY or (key[:3] in WITH_ANNOTATIONS and key[-1] == ALLOWED)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, (str, int)) for item in value)
    return isinstance(value, (str, int))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: Any) -> str:
    """As TOML, whose strings, numbers and lists of these are also JSON's."""
    return json.dumps(value, ensure_ascii=False)
