# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether --tags and --skip-tags leave anything of a run.

Ansible ends successfully where they leave nothing, so a gate would be green although no node was read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Iterable, Iterator, Mapping

from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook import Playbook
from ansible.playbook.block import Block
from ansible.utils.collection_loader._collection_finder import _get_collection_playbook_path
from ansible.vars.manager import VariableManager

from ..module_utils._base.errors import InputError

# What Ansible runs whatever is chosen, which reads no node; and what it runs only if it is named.
_ALWAYS, _NEVER = "always", "never"


def check_tags(command_line: Mapping[str, Any]) -> None:
    """Refuse a run of which its tags leave nothing. Raises InputError.

    command_line: the options of ansible-playbook, with the playbooks in `args`.
    """
    only, skipped = (tuple(command_line.get(name) or ()) for name in ("tags", "skip_tags"))
    if skipped or not set(only) <= {"all"}:
        _check(tuple(command_line.get("args") or ()), only or ("all",), skipped)


@lru_cache(maxsize=1)
def _check(playbooks: tuple[str, ...], only: tuple[str, ...], skipped: tuple[str, ...]) -> None:
    try:
        tasks = [tags for playbook in playbooks for tags in _tags_of_tasks(playbook)]
    except AnsibleError:
        # Ansible itself says what is wrong, or the names of files are only known in the run.
        return
    if any(is_chosen(tags, only, skipped) for tags in tasks):
        return
    named = (("--tags", () if only == ("all",) else only), ("--skip-tags", skipped))
    given = " ".join("%s %s" % (name, ",".join(tags)) for name, tags in named if tags)
    there = sorted(set().union(*tasks) - {_ALWAYS, _NEVER})
    raise InputError(
        "leaves no task of this run, so no node would be read",
        given,
        "the tags here are %s" % ", ".join(there) if there else "leave it out",
    )


def is_chosen(tags: Iterable[str], only: Iterable[str], skipped: Iterable[str]) -> bool:
    """Return whether Ansible runs a task with these tags, beside what it runs always.

    Source: ansible.playbook.taggable.Taggable.evaluate_tags.
    """
    own = set(tags) - {_ALWAYS}
    words = {"all", "tagged" if own else "untagged"}
    is_wanted = not own.isdisjoint(only) or (_NEVER not in own and not words.isdisjoint(only))
    return is_wanted and (own | words).isdisjoint(skipped)


def _tags_of_tasks(playbook: str) -> Iterator[set[str]]:
    """Yield the tags of each task of a playbook, and of those that it imports. Raises AnsibleError."""
    resource = _get_collection_playbook_path(playbook)
    loader = DataLoader()
    variables = VariableManager(loader=loader, inventory=InventoryManager(loader=loader, parse=False))
    for play in Playbook.load(resource[1] if resource else playbook, variables, loader).get_plays():
        for block in play.compile():
            yield from _tags_of_block(block)


def _tags_of_block(block: Block) -> Iterator[set[str]]:
    for task in [*block.block, *block.rescue, *block.always]:
        if isinstance(task, Block):
            yield from _tags_of_block(task)
        elif task.action not in ("meta", "ansible.builtin.meta"):
            yield set(task.tags)
