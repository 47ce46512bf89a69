# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kubelet of a node is given: its words, its files, and both as they would be with other settings."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Mapping

from ..errors import PERMISSION, NodeError, RefusedError
from ..kubelet.installed.installation import may_give_flags
from ..kubelet.start.prediction import Given
from ..tree import LARGEST_OF_KUBELET, OverlaidTree, Tree
from .node import Node

if TYPE_CHECKING:
    from ..kubelet.file.configuration import Configuration
    from ..kubelet.settings import Plan
    from ..kubelet.start.loading.file_state import Absent, DropIns, FileState


def given_of(node: Node) -> Given:
    """What the kubelet of this node is given, its words without secrets. Raises NodeError where there is none."""
    installation, tree = node.installation, node.tree
    if installation is None:
        raise node.missing()
    path, directory = installation.config_path, installation.config_dir
    if path is not None and not installation.command_line and not tree.exists(path, follow=False):
        raise node.missing()
    distribution, arguments = installation.distribution, installation.command_line
    words: list[str] = []
    if arguments or may_give_flags(tree, distribution):
        # Imported here: a node that neither runs a kubelet nor gives it flags is read faster without.
        from ..kubelet.installed.given_flags import find_words
        from ..kubelet.installed.handed_over import handed_over

        # What the kubelet says of a word has it in quotes.
        words = handed_over(find_words(tree, distribution, arguments))
    return Given(
        words,
        None if path is None else _state_of(tree, path),
        None if directory is None else _drop_ins(tree, directory),
        path or "",
        directory or "",
    )


def given_with(node: Node, wanted: Mapping[str, object]) -> Given:
    """What it would be given with the wanted settings where they are written; where nothing may be, as if they were.

    A file that cannot be read stays as it is.
    """
    from ..kubelet.placement import plan_files
    from .sources import read_sources

    plan = _plan(node, wanted)
    if plan is None:
        return given_of(node)
    try:
        files = plan_files(read_sources(node, ""), plan, wanted, node.minor)
    except RefusedError:
        import json

        content = json.dumps(plan.configuration.values).encode("utf-8")
        return given_of(node)._replace(arguments=(), file=content, drop_ins=None)
    contents = {node.tree.node_path(file.path): file.after.encode("utf-8") for file in files}
    return given_of(node.on(OverlaidTree(node.tree, contents))) if contents else given_of(node)


def planned_values(
    node: Node, wanted: Mapping[str, object], configuration: Configuration | None = None
) -> dict[str, object] | None:
    """The values of the configuration with what is wanted; None where it cannot be read.

    configuration: what the kubelet runs with, where it has been read already.
    """
    plan = _plan(node, wanted, configuration)
    return None if plan is None else plan.configuration.values


def _plan(node: Node, wanted: Mapping[str, object], configuration: Configuration | None = None) -> Plan | None:
    """What becomes of the settings; None where the configuration cannot be read."""
    from ..kubelet.settings import plan_settings

    try:
        return plan_settings(wanted, configuration or node.needed_configuration(), node.minor)
    except NodeError as error:
        if error.kind == PERMISSION:
            raise
        return None


def _state_of(tree: Tree, path: str) -> FileState:
    try:
        content = tree.content(path, LARGEST_OF_KUBELET)
    except NodeError as error:
        if error.kind == PERMISSION:
            raise
        return _place_of(tree.path(path))
    return _missing() if content is None else content


def _missing() -> Absent:
    # Imported here, as below: nearly all nodes have their file.
    from ..kubelet.start.loading.file_state import Absent

    return Absent.MISSING


def _place_of(here: str) -> Absent:
    """What is in the place of a file that cannot be read."""
    from ..kubelet.start.loading.file_state import Absent

    try:
        return Absent.DIRECTORY if stat.S_ISDIR(os.stat(here).st_mode) else Absent.UNREADABLE
    except FileNotFoundError:  # a link to nothing
        return Absent.MISSING
    except OSError:
        return Absent.UNREADABLE


def _drop_ins(tree: Tree, directory: str) -> DropIns:
    if not tree.exists(directory, follow=False):
        return _missing()
    if os.path.islink(tree.path(directory)):
        # The kubelet does not follow it.
        return []
    paths = tree.files_below(directory)
    start = len(directory.rstrip("/")) + 1
    return [(path[start:], _state_of(tree, path)) for path in paths]
