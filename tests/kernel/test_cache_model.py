# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of resctrl against the kernel's documentation, and the real one where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import (
    CacheTerms,
    absent,
    present,
    wish_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.resctrl import read_resctrl
from ansible_collections.kubenode.cpu_manager.tests.kernel.caches import divided, write
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import node_at
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.shapes import BandwidthShape, CacheShape, Shape


def refused(place: Path, text: str) -> str:
    """Return what last_cmd_status says after a write."""
    with pytest.raises(OSError, match="Invalid argument"):
        write(place, text)
    return (place.parent / "info/last_cmd_status").read_text()


def test_documented_examples(model: Mounted) -> None:
    """The examples of Documentation/filesystems/resctrl.rst: two groups with halves, and one with an exclusive mode."""
    ids = {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}
    model.load(Shape(list(range(8)), [CacheShape("L3", ids, bits=4)], [BandwidthShape("MB", [0, 1])], rmids=16))
    root = model.place
    for name in ("p0", "p1"):
        (root / name).mkdir()
    write(root / "p0/schemata", "L3:0=3;1=c\nMB:0=50;1=50\n")
    write(root / "p1/schemata", "L3:0=3;1=3\nMB:0=50;1=50\n")
    assert (root / "p0/schemata").read_text() == "L3:0=3;1=c\nMB:0=50;1=50\n"
    # What is left out stays, and bandwidth is rounded up to its step.
    write(root / "p1/schemata", "MB:1=33\n")
    assert (root / "p1/schemata").read_text() == "L3:0=3;1=3\nMB:0=50;1=40\n"
    assert refused(root / "schemata", "L3:0=5\n") == "The mask 5 has non-consecutive 1-bits\n"
    assert refused(root / "schemata", "L3:0=10\n") == "Mask out of range\n"
    assert refused(root / "schemata", "L3:0=0\n") == "Mask out of range\n"
    assert refused(root / "schemata", "L3:0=f;0=f\n") == "Duplicate domain 0\n"
    assert refused(root / "schemata", "L4:0=f\n") == "Unknown or unsupported resource name 'L4'\n"
    assert refused(root / "schemata", "MB:0=5\n") == "MB value 5 out of range [10,100]\n"
    assert refused(root / "mode", "exclusive\n") == "Schemata overlaps\n"
    assert refused(root / "cpus_list", "0-3\n") == "Can't drop CPUs from default group\n"
    assert refused(root / "cpus_list", "0-8\n") == "Can only assign online CPUs\n"
    # CPUs are in one group: a second one takes them, and what a group gives up is the root's.
    write(root / "p0/cpus_list", "4-7\n")
    write(root / "p1/cpus_list", "6-7\n")
    write(root / "p1/cpus_list", "7\n")
    assert [(root / name / "cpus_list").read_text() for name in (".", "p0", "p1")] == ["0-3,6\n", "4-5\n", "7\n"]
    # An exclusive group keeps its ways, also from a new one.
    write(root / "schemata", "L3:0=c;1=c\n")
    write(root / "p1/schemata", "L3:0=c\n")
    write(root / "p0/schemata", "L3:1=3\n")
    write(root / "p1/schemata", "L3:1=c\n")
    write(root / "p0/mode", "exclusive\n")
    assert refused(root / "schemata", "L3:0=f\n") == "Overlaps with exclusive group\n"
    (root / "p2").mkdir()
    assert (root / "p2/schemata").read_text() == "L3:0=c;1=c\nMB:0=100;1=100\n"
    assert (root / "info/L3/bit_usage").read_text() == "0=SSEE;1=SSEE\n"
    (root / "p1").rmdir()
    assert (root / "cpus_list").read_text() == "0-3,6-7\n"
    with pytest.raises(PermissionError):
        (root / "info").rmdir()


def test_the_model_looks_as_a_mounted_resctrl_does(model: Mounted) -> None:
    """Sizes, rights and names: nothing but the mount shows which one it is."""
    divided(model, "xeon-l3-mba-mbm")
    place = model.place
    assert [(place / name).stat().st_size for name in ("schemata", "cpus_list", "info/last_cmd_status")] == [0, 0, 0]
    assert (place / "schemata").read_text() == "L3:0=7ff;1=7ff\nMB:0= 100;1= 100\n"
    with pytest.raises(PermissionError):
        (place / "file").write_text("x")
    with pytest.raises(PermissionError):
        (place / "schemata").unlink()


@pytest.mark.skipif(not Path("/sys/fs/resctrl").exists(), reason="this machine has no resctrl")
def test_the_real_one_is_divided_and_put_back() -> None:
    """On the machine itself, where it is mounted and nobody has a group: the same as on the model."""
    found = read_resctrl(Tree("/"))
    if found is None or found.foreign or not found.caches or any(cache.has_cdp for cache in found.caches):
        pytest.skip("resctrl is not mounted here, or somebody uses it")
    names = [Path("/sys/fs/resctrl") / name for name in ("schemata", "cpus_list", "mode")]
    before = [path.read_text() for path in names]
    node = node_at(Path("/"))
    if node.installation is not None:
        pytest.skip("this machine has a kubelet")
    try:
        present(node, wish_of({"exclusive_share": "50%"}), CacheTerms(), True)
        assert not present(node, wish_of({"exclusive_share": "50%"}), CacheTerms(), True).steps
    finally:
        absent(node, True)
    assert [path.read_text() for path in names] == before
