# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the kubelet of a node is installed: what it was started with, else what its distribution's files say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ...tree import Tree
from .distributions import Distribution, has_unit, installed_distribution, running_distribution, service_of
from .process import Search, search_kubelet

if TYPE_CHECKING:
    from .flags import Given

# A kubelet that is none of the known ones.
UNKNOWN = Distribution("unknown")


class Installation(NamedTuple):
    """Where the kubelet of a node takes its settings from."""

    distribution: Distribution
    config_path: str | None
    config_dir: str | None
    kubelet_root: str
    # The flags that count, in order.
    flags: tuple[Given, ...] = ()
    # What it was started with; empty where none runs and none is given.
    command_line: tuple[str, ...] = ()
    # Of the running kubelet.
    pid: int | None = None
    # What is strange about it, for people.
    notes: tuple[str, ...] = ()

    def to_dict(self, tree: Tree) -> dict[str, Any]:
        """Plain data, as drift_info returns it, without what may be secret."""
        words: list[str] = []
        if self.command_line:
            # Imported here: a node that does not run a kubelet is read faster without.
            from .handed_over import handed_over

            words = handed_over(self.command_line)
        return {
            "distribution": self.distribution.name,
            "service": service_of(tree, self.distribution),
            "config_path": self.config_path,
            "config_dir": self.config_dir,
            "kubelet_root": self.kubelet_root,
            "cri_socket": self.distribution.cri_socket,
            "log_file": self.distribution.log_file,
            "pid": self.pid,
            "command_line": words,
        }


def find_installation(
    tree: Tree,
    command_line: Sequence[str] = (),
    config_path: str | None = None,
    kubelet_root: str | None = None,
    search: Search | None = None,
) -> Installation | None:
    """The kubelet of this node; None where there is none.

    A running kubelet's command line counts before the one that is given, which is that of one that is stopped.
    config_path and kubelet_root count before all else. search: the look at the node's processes, where it was taken.
    Raises NodeError for a file that cannot be read.
    """
    process, notes = search_kubelet(tree) if search is None else search
    arguments = process.arguments if process is not None else tuple(command_line)
    distribution = running_distribution(" ".join(arguments)) if arguments else installed_distribution(tree)
    if distribution is None and not arguments and config_path is None:
        return None
    distribution = distribution or UNKNOWN
    flags: list[Given] = []
    named_path = config_dir = root = None
    pid = None if process is None else process.pid
    if arguments or may_give_flags(tree, distribution):
        # Imported here: a node that neither runs a kubelet nor gives it flags is read faster without.
        from .flags import CONFIG, CONFIG_DIR, ROOT_DIR, path_of
        from .given_flags import find_flags, replaced_notes

        flags = find_flags(tree, distribution, arguments, pid)
        notes = (*notes, *replaced_notes(tree, distribution))
        named_path, config_dir, root = (path_of(flags, name) for name in (CONFIG, CONFIG_DIR, ROOT_DIR))
    # What k3s and RKE2 are given as --config and --config-dir they put into their own directory, where they have one.
    if (
        distribution.config_dir is not None
        and (distribution.has_kubelet_args or not arguments)
        and tree.exists(distribution.config_dir)
    ):
        config_dir, named_path = distribution.config_dir, None if distribution.has_kubelet_args else named_path
    return Installation(
        distribution,
        config_path or named_path or distribution.config_path,
        config_dir,
        kubelet_root or _expanded(root) or distribution.kubelet_root,
        tuple(flags),
        arguments,
        pid,
        notes,
    )


def may_give_flags(tree: Tree, distribution: Distribution) -> bool:
    """Whether there is a file that may give flags to a kubelet that does not run."""
    places = [place for file in distribution.flag_files for place in (file.path, file.path + ".d")]
    return any(tree.exists(place) for place in places) or has_unit(tree, service_of(tree, distribution))


def _expanded(path: str | None) -> str | None:
    """A path, unless it depends on a variable, as in MicroK8s' file."""
    return None if path is None or "$" in path else path
