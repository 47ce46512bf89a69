# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What puts back: a file of others loses only our lines, and what others have set since stays."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import LIST, MASK, KernelSetting
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingJournal,
    HousekeepingWish,
    KeptFile,
    SavedValue,
    checksum,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_plan import (
    DEFAULTS,
    Back,
    is_foreign,
    take_back,
    undone,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import FileStep, FoundHost, Link
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import SavedFile
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"# x\n"]), max_size=6)
OURS = b"BANNED=2-7\n"
ONLINE = CPUSet.parse("0-7")
RESERVED = CPUSet.parse("0-1")
FILE = "/etc/default/irqbalance"


def kept(before: bytes | None, last: bytes) -> KeptFile:
    saved = SavedFile(before, 0o640, 1, 2) if before is not None else SavedFile(None)
    return KeptFile("irqbalance", saved, (checksum(last),), last if before is not None else None)


def back(
    values: Mapping[str, SavedValue],
    texts: Mapping[str, str | None],
    settings: tuple[KernelSetting, ...] = (),
    files: Mapping[str, tuple[KeptFile, SavedFile]] | None = None,
    links: Mapping[str, tuple[str, str | None]] | None = None,
) -> Back:
    files, links = files or {}, links or {}
    journal = HousekeepingJournal(
        HousekeepingWish(RESERVED, ()),
        RESERVED,
        "boot",
        values,
        {path: file for path, (file, _now) in files.items()},
        {path: target for path, (target, _now) in links.items()},
        (),
        (),
        {},
    )
    found = FoundHost(
        settings,
        ONLINE,
        "boot",
        texts,
        {path: now for path, (_file, now) in files.items()},
        {path: now for path, (_target, now) in links.items()},
    )
    return take_back(found, journal, RESERVED, values)


# --- files ----------------------------------------------------------------------------------------------------


@given(LINES, LINES, LINES, LINES, st.booleans())
def test_what_others_add_stays(
    head: list[bytes], tail: list[bytes], more: list[bytes], end: list[bytes], replaces: bool
) -> None:
    """A line of ours, put in the place of another or added, goes; all other lines stay as they are now."""
    old = [b"BANNED=\n"] if replaces else []
    before, last = b"".join([*head, *old, *tail]), b"".join([*head, OURS, *tail])
    assume(before != last)
    now = b"".join([*more, *head, OURS, *tail, *end])
    assert undone(kept(before, last), now) == b"".join([*more, *head, *old, *tail, *end])


@given(LINES, LINES)
def test_our_lines_went_or_are_there_twice(head: list[bytes], tail: list[bytes]) -> None:
    before, last = b"".join([*head, *tail]), b"".join([*head, OURS, *tail])
    assert undone(kept(before, last), b"".join([*tail, *head])) is None
    assert undone(kept(before, last), last + last) is None


def test_a_last_line_without_an_end() -> None:
    file = kept(b"a\nb", b"a\nb\n" + OURS)
    assert undone(file, b"x\na\nb\n" + OURS) == b"x\na\nb"
    assert undone(file, b"a\nb\n" + OURS + b"c\n") == b"a\nb\nc\n"


def test_a_file_that_is_ours_alone() -> None:
    assert undone(kept(None, b"x"), b"y") is None


@pytest.mark.parametrize(
    ("before", "now", "foreign"),
    [
        (b"old", b"old", False),
        (b"old", b"ours", False),
        (b"old", b"else", True),
        (b"old", None, True),
        (None, None, False),
        (None, b"ours", False),
        (None, b"else", True),
    ],
)
def test_is_foreign(before: bytes | None, now: bytes | None, foreign: bool) -> None:
    assert is_foreign(kept(before, b"ours"), SavedFile(now)) is foreign
    assert not is_foreign(None, SavedFile(now))


def test_files_go_back() -> None:
    now = SavedFile(b"ours", 0o600, 1, 2)
    assert back({}, {}, files={FILE: (kept(b"old", b"ours"), now)}).files == [
        FileStep("irqbalance", FILE, b"ours", b"old", 0o640, (1, 2))
    ]
    assert back({}, {}, files={FILE: (kept(None, b"ours"), now)}).files == [
        FileStep("irqbalance", FILE, b"ours", None, 0)
    ]
    assert back({}, {}, files={FILE: (kept(b"old", b"ours"), SavedFile(b"old"))}).files == []


@pytest.mark.parametrize(
    ("file", "now", "word"),
    [
        (kept(None, b"ours"), b"else", "changed it since; it stays so"),
        (kept(b"a\n", b"a\nours\n"), b"a\n b\n", "changed it since; it stays so"),
        (kept(b"a\n", b"a\nours\n"), None, "removed it since; it stays so"),
    ],
)
def test_files_of_others_stay(file: KeptFile, now: bytes | None, word: str) -> None:
    found = back({}, {}, files={FILE: (file, SavedFile(now))})
    assert found.files == []
    (note,) = found.notes
    assert word in note
    assert note.check == "housekeeping-foreign"  # type: ignore[attr-defined]


def test_only_our_lines_go() -> None:
    now = SavedFile(b"new\na\nours\n", 0o600, 7, 8)
    found = back({}, {}, files={FILE: (kept(b"a\n", b"a\nours\n"), now)})
    assert found.files == [FileStep("irqbalance", FILE, now.content, b"new\na\n", 0o600, (7, 8))]
    assert "only what is ours" in found.notes[0]


@pytest.mark.parametrize(
    ("path", "layer", "now", "is_refused"),
    [
        ("/etc/cron.d/evil", "slices", b"ours", True),
        ("/etc/systemd/system/evil.service", "boot", b"ours", True),
        ("/etc/systemd/system/kubenode-housekeeping.service", "boot", b"ours", False),
        ("/usr/local/lib/kubenode/cpu-manager-housekeeping.pyz", "boot", b"ours", False),
        ("/etc/systemd/system/isolated.slice", "partition", b"ours", False),
        ("/etc/systemd/system/system.slice.d/50-kubenode-housekeeping.conf", "slices", b"ours", False),
        ("/etc/systemd/system.conf.d/50-kubenode-housekeeping.conf", "manager", b"ours", False),
        ("/etc/default/grub", "kernel_line", b"ours", False),
        ("/etc/default/grub.d/99-kubenode-housekeeping.cfg", "kernel_line", b"ours", False),
        ("/etc/kernel/cmdline", "kernel_line", b"ours", False),
        ("/etc/sysconfig/irqbalance", "irqbalance", b"ours", False),
        # Wherever systemd or tuned are told to look.
        ("/opt/balance.env", "irqbalance", b"IRQBALANCE_BANNED_CPULIST=2-7", False),
        ("/opt/balance.env", "irqbalance", b"ours", True),
        ("/opt/variables.conf", "tuned", b"isolated_cores=2-7", False),
    ],
)
def test_only_what_a_housekeeping_writes_is_put_back(path: str, layer: str, now: bytes, is_refused: bool) -> None:
    """Also of a journal in a node that somebody else has saved."""
    file = KeptFile(layer, SavedFile(b"old", 0o644), (checksum(now),), now)
    files = {path: (file, SavedFile(now, 0o644, 1, 2))}
    if not is_refused:
        assert [step.path for step in back({}, {}, files=files).files] == [path]
        return
    with pytest.raises(RefusedError) as caught:
        back({}, {}, files=files)
    assert (caught.value.kind, caught.value.where) == ("not_ours", path)


@pytest.mark.parametrize(("user", "group", "is_refused"), [(0, 0, False), (1, 2, False), (1, 3, True), (3, 2, True)])
def test_a_file_is_given_to_nobody_who_does_not_have_it(user: int, group: int, is_refused: bool) -> None:
    file = KeptFile("irqbalance", SavedFile(b"old", 0o644, user, group), (checksum(b"ours"),), b"ours")
    files = {FILE: (file, SavedFile(b"ours", 0o644, 1, 2))}
    with pytest.raises(RefusedError) if is_refused else nullcontext():
        assert len(back({}, {}, files=files).files) == 1


def test_links() -> None:
    found = back({}, {}, links={"/a": ("/x", "/x"), "/b": ("/x", "/y"), "/c": ("/x", None)})
    assert found.links == [Link("boot", "/a", "/x", False)]


# --- values ---------------------------------------------------------------------------------------------------

IRQ, SLICE, QUEUE = "/proc/irq/24/smp_affinity_list", "/sys/fs/cgroup/system.slice/cpuset.cpus", "/sys/q/cpumask"


@pytest.mark.parametrize(
    ("layer", "before", "text", "after"),
    [
        ("interrupts", "0-7", "0-1", "0-7"),  # as it was given
        ("interrupts", "0-7", "1", "0-7"),  # irqbalance has chosen
        ("interrupts", "0-7", "0-7", None),
        ("interrupts", "4", "0-1", "4"),
        ("interrupts", "0-7", None, None),  # its device is gone
        ("interrupts", "0-7", "3", "note"),
        ("interrupts", "0-7", "0-2", "note"),
        ("interrupts", "0-7", "rubbish", "note"),
        ("workqueues", "ff", "3", "ff"),
        ("workqueues", "ff", "4", "note"),
        ("rps", "f0", "0", "note"),  # somebody has switched it off
    ],
)
def test_values_go_back(layer: str, before: str, text: str | None, after: str | None) -> None:
    form = LIST if layer == "interrupts" else MASK
    found = back({IRQ: SavedValue(layer, "it", form, before, True)}, {IRQ: text})
    assert [(step.before, step.after) for step in found.values] == ([] if after in (None, "note") else [(text, after)])
    assert len(found.notes) == (after == "note")
    assert back({IRQ: SavedValue(layer, "it", form, before, False)}, {IRQ: text}).values == []


@pytest.mark.parametrize(
    ("before", "text", "steps"),
    [
        ("", "0-1", [("0-1", "0-7"), ("0-7", "")]),
        ("", "1", [("1", "0-7"), ("0-7", "")]),
        ("0-3", "0-1", [("0-1", "0-7"), ("0-7", "0-3")]),
        ("0-7", "0-1", [("0-1", "0-7")]),
        ("", "0-7", [("0-7", "")]),  # a run was killed in between
        ("", "", []),
        ("", None, []),
        ("", "2-3", []),
    ],
)
def test_a_cgroup_gets_all_first(before: str, text: str | None, steps: list[tuple[str, str]]) -> None:
    found = back({SLICE: SavedValue("slices", "system.slice", LIST, before, True)}, {SLICE: text})
    assert [(step.before, step.after) for step in (*found.widened, *found.cgroups)] == steps
    assert found.values == []
    assert len(found.notes) == (text == "2-3")


@pytest.mark.parametrize(
    ("name", "text", "after"),
    [
        ("24 new", "0-1", "0-7"),  # the number is that of another device now
        ("24 eth0", "0-1", None),
        ("30 nvme", "1", "0-7"),
        ("30 nvme", "4", None),
    ],
)
def test_what_came_since(name: str, text: str, after: str | None) -> None:
    """It has begun with our CPUs, and gets what it would have had."""
    number = name.split(maxsplit=1)[0]
    path = "/proc/irq/%s/smp_affinity_list" % number
    values = {
        DEFAULTS["interrupts"]: SavedValue("interrupts", "new interrupts", MASK, "ff", True),
        IRQ: SavedValue("interrupts", "24 eth0", LIST, "0-1", False),
    }
    setting = KernelSetting("interrupts", name, path, text, CPUSet.parse(text))
    found = back(values, {DEFAULTS["interrupts"]: "ff", IRQ: "0-1"}, (setting,))
    assert [(step.path, step.after) for step in found.values] == ([] if after is None else [(path, after)])
    # What new ones begin with was not ours.
    values[DEFAULTS["interrupts"]] = values[DEFAULTS["interrupts"]]._replace(is_ours=False)
    assert back(values, {}, (setting,)).values == []
