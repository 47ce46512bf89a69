# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random rollouts, rollbacks, interruptions, edits and repairs of others: nothing that others wrote is ever lost.

SEQUENCES=3000 SEED=7 pytest tests/faults/test_foreign_edits.py
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Iterator

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    ConfigurationError,
    CPUManagerError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import check_changes, make_changes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST, OPEN
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change.node_change import configuration_changes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import value_at
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.wanted_settings import wanted_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.journal_steps import JournalStep, note
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    RolloutJournal,
    begin_writing,
    read_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.modules import kubelet_config
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CONFIG, EMPTY, STATIC, write_saved
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .changing import defaults
from .counting import Count

SEQUENCES, SEED = how_many("SEQUENCES", 60, 300), how_many("SEED", 36, 36)
STEPS = 5

WISHES: tuple[dict[str, Any], ...] = (
    {"cpu_manager_policy": "static", "reserved_system_cpus": "0,4"},
    {"cpu_manager_policy": "static", "reserved_system_cpus": "0-1,4-5", "topology_manager_scope": "pod"},
    {"cpu_manager_policy": "none"},
    {"cpu_manager_reconcile_period": "7s", "system_reserved_cpu": "500m"},
    {"cpu_manager_policy_options": {"full-pcpus-only": "true"}, "cpu_manager_policy": "static"},
)


class KillError(Exception):
    """The run ends here."""


class Story:
    """One node, and what happens to it."""

    def __init__(self, root: Path, choice: random.Random, seen: Counter[str]) -> None:
        self.root, self.choice, self.seen = str(root), choice, seen
        self.file, self.number = root / CONFIG[1:], 100_000
        for directory in (self.file.parent, (root / OPEN[1:]).parent):
            for path in directory.glob("*"):
                path.unlink()
        self.file.write_text(HEADER + choice.choice([STATIC, "maxPods: 20\n"]), encoding="utf-8")

    def contents(self) -> list[bytes]:
        """Return the file and its backups."""
        paths = [self.file, *self.file.parent.glob(self.file.name + ".*~")]
        return [path.read_bytes() for path in paths if path.exists()]

    def marks(self) -> set[bytes]:
        """Return what others wrote, and is somewhere."""
        every = b"\n".join(self.contents())
        return {b"%d" % number for number in range(100_000, self.number) if b"%d" % number in every}

    def journal(self, path: str = OPEN) -> RolloutJournal | None:
        return read_journal(Tree(self.root), path)

    # --- others ---------------------------------------------------------------------------------------------

    def mark(self) -> str:
        self.number += 1
        return str(self.number - 1)

    def edit(self) -> None:
        """Edit the file as somebody else would; what that takes away is theirs to take."""
        found = self.file.read_bytes().decode("utf-8", "replace") if self.file.exists() else HEADER
        pick = self.choice.choice([0, 1, 1, 1, 2, 3, 4, 5, 6])
        if pick == 0:
            self.file.unlink(missing_ok=True)
        elif pick == 1:
            self.file.write_text("%s\t: [}\n# %s\n" % (found, self.mark()), encoding="utf-8")
        elif pick == 2:
            self.file.write_text("%s# %s\n" % (found, self.mark()), encoding="utf-8")
        elif pick == 3:
            lines = [line for line in found.splitlines(keepends=True) if not line.startswith("podPidsLimit")]
            self.file.write_text("".join(lines) + "podPidsLimit: %s\n" % self.mark(), encoding="utf-8")
        elif pick == 4:
            self.file.write_text(found.replace("static", "none") + "# %s\n" % self.mark(), encoding="utf-8")
        elif pick == 5 and self.file.exists():
            self.file.chmod(0o600)
        else:
            self.repair()

    def repair(self) -> None:
        """Write the file anew, as somebody else would."""
        policy = self.choice.choice(["", STATIC])
        self.file.write_text("%s%smaxPods: %s\n" % (HEADER, policy, self.mark()), encoding="utf-8")

    # --- the role ---------------------------------------------------------------------------------------------

    def step(self, run: str, state: str, **given: Any) -> None:
        note(Tree(self.root), JournalStep(state, run, backup_keep=0, **given))

    def configure(self, run: str, wish: dict[str, Any]) -> None:
        """Write the configuration as a change does: it notes first what it is about to write."""
        tree = Tree(self.root)
        node = Node(tree)
        changes = configuration_changes(node, wanted_settings(node, {**defaults(kubelet_config), **wish}))
        check_changes(changes, backup=True, keep=0)
        begin_writing(tree, run, {tree.node_path(change.path): change.after for change in changes}, check_mode=False)
        self.maybe(make_changes)(changes, True, 0)

    def rollout(self, run: str) -> Iterator[Callable[[], Any]]:
        wish = self.choice.choice(WISHES)
        yield lambda: self.step(run, "stopping", facts={"rollout": run})
        yield lambda: self.step(run, "changing", files=[CONFIG])
        yield lambda: self.configure(run, wish)
        yield lambda: self.step(run, "done", files=[CONFIG])

    def rollback(self, run: str) -> Iterator[Callable[[], Any]]:
        overwrite = self.choice.random() < 0.3
        files = [CONFIG] if CONFIG in (self.journal(LAST) or RolloutJournal("", {}, {})).files else []
        yield lambda: self.step(run, "stopping")
        yield lambda: self.step(run, "changing", files=[CONFIG])
        yield lambda: self.checked(
            self.journal(LAST),
            lambda: self.step(run, "restored", source="last", files=files, overwrite_edited=overwrite),
        )
        yield lambda: self.step(run, "undone", files=files)

    def recover(self, run: str, is_rollback: bool) -> None:
        overwrite = self.choice.random() < 0.3
        self.step(run, "taken")
        self.checked(self.journal(), lambda: self.step(run, "restored", overwrite_edited=overwrite))
        self.step(run, "taken_back" if is_rollback else "absent")

    def checked(self, source: RolloutJournal | None, act: Callable[[], None]) -> None:
        """Take a change back, and look whether its settings are what they were."""
        before = self.file.read_bytes() if self.file.exists() else None
        try:
            act()
        except CPUManagerError as error:
            self.seen[error.kind] += 1
            assert (self.file.read_bytes() if self.file.exists() else None) == before
            raise
        if source is None or CONFIG not in source.files or CONFIG not in (source.written or {}):
            return
        saved = source.files[CONFIG].content
        found = self.file.read_bytes() if self.file.exists() else None
        if found == saved:
            self.seen["to the byte" if before == (source.written or {})[CONFIG] else "as a whole"] += 1
            return
        self.seen["kept"] += 1
        old, new, now = (
            KubeletConfiguration.parse((content or b"").decode("utf-8"), CONFIG).values
            for content in (saved, (source.written or {})[CONFIG], found)
        )
        for setting in SETTINGS.values():
            if value_at(old, setting.path) != value_at(new, setting.path):
                assert value_at(now, setting.path) == value_at(old, setting.path), setting.path

    def play(self, number: int, is_rollback: bool) -> None:
        """Do one run of the role, which may be killed."""
        run = "2026-11-22T09:30:%02d" % number
        marks, mode = self.marks(), self.file.stat().st_mode if self.file.exists() else None
        try:
            if self.journal() is not None:
                self.recover(run, is_rollback)
            most = self.choice.choice([1, 2, 3, 4, 4, 4])
            for step in islice(self.rollback(run) if is_rollback else self.rollout(run), most):
                step()
        except KillError:
            self.seen["killed before the write"] += 1
        except ConfigurationError:
            self.seen["unreadable"] += 1
        except CPUManagerError as error:
            self.seen["failed: " + error.kind] += 1
        assert marks <= self.marks(), (run, marks - self.marks())
        # A mode is of others, too.
        assert mode is None or not self.file.exists() or self.file.stat().st_mode == mode

    def maybe(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any) -> Any:
            if self.choice.random() < 0.2:
                raise KillError
            return function(*arguments)

        return act


def test_nothing_that_others_wrote_is_lost(tmp_path: Path, count: Count) -> None:
    seen: Counter[str] = Counter()
    write_saved(EMPTY, tmp_path)
    for number in range(SEQUENCES):
        choice = random.Random("%d %d" % (SEED, number))
        story = Story(tmp_path, choice, seen)
        # The first is a rollout: before it there is nothing to go back from.
        story.play(0, is_rollback=False)
        for step in range(1, STEPS):
            if choice.random() < 0.6:
                story.play(step, choice.random() < 0.6)
            else:
                story.edit()
    print("SEED=%d" % SEED, dict(seen))
    for kind in ("to the byte", "as a whole", "kept", "edited", "killed before the write"):
        assert seen[kind] >= SEQUENCES // 75, (kind, seen)
    count("meetings with others", SEQUENCES)
