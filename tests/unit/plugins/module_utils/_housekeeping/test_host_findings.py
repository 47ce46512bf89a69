# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    BANNED_LIST,
    FIXED,
    INTERRUPTS,
    MANAGER,
    REFUSED,
    RPS,
    SLICES,
    UNREADABLE,
    WATCHDOG,
    WORKQUEUES,
    Irqbalance,
    KernelSetting,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.partitions import Partition
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.systemd import ConfiguredCPUs
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.host_findings import (
    HostCPUs,
    irqbalance_findings,
    lasting_findings,
    layer_findings,
    manager_findings,
    partition_findings,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

cpus = CPUSet.parse


RESERVED = HostCPUs(cpus("0-1"), cpus("0-7"))


def setting(
    layer: str, found: str | None, effective: str | None = None, problem: str = "", name: str = "x"
) -> KernelSetting:
    own = None if found is None else cpus(found)
    return KernelSetting(
        layer, name, "/x", found or "", own, "list", None if effective is None else cpus(effective), problem
    )


@pytest.mark.parametrize(
    ("found_setting", "checks"),
    [
        (setting(INTERRUPTS, "0-1"), []),
        (setting(INTERRUPTS, "0-7"), ["host-on-exclusive-cpus"]),
        # Where it is handled now is no promise.
        (setting(INTERRUPTS, "0-7", "0"), ["host-on-exclusive-cpus"]),
        (setting(INTERRUPTS, "0-7", "5", FIXED), ["interrupts-not-movable"]),
        (setting(INTERRUPTS, "0-7", "1", FIXED), []),
        (setting(INTERRUPTS, "0-7", "", FIXED), []),
        (setting(INTERRUPTS, "0-7", None, FIXED), ["interrupts-not-movable"]),
        (setting(INTERRUPTS, None, None, UNREADABLE), []),
        (setting(INTERRUPTS, "0-7", "5", REFUSED), ["interrupts-not-movable"]),
        (setting(INTERRUPTS, "0-7", "1", REFUSED), []),
        (setting(SLICES, "0-7", "0-7", REFUSED), ["host-on-exclusive-cpus"]),
        (setting(WORKQUEUES, "0-7"), ["host-on-exclusive-cpus"]),
        # All workqueues together have less.
        (setting(WORKQUEUES, "0-7", "0-1"), []),
        (setting(WORKQUEUES, "0-7", "0-2"), ["host-on-exclusive-cpus"]),
        (setting(RPS, ""), []),
        (setting(RPS, "4"), ["host-on-exclusive-cpus"]),
        (setting(WATCHDOG, "0-7"), []),
        (setting(SLICES, None, "0-7"), ["host-on-exclusive-cpus"]),
        (setting(SLICES, "1"), []),
        (setting(SLICES, "0-7", "0-7", FIXED), []),
    ],
)
def test_what_may_run_elsewhere(found_setting: KernelSetting, checks: list[str]) -> None:
    found = layer_findings([found_setting], RESERVED)
    assert [finding["check"] for finding in found] == checks
    assert all(finding["subject"] == found_setting.layer for finding in found)


def test_a_finding_names_some_of_many() -> None:
    many = [setting(SLICES, None, "0-7", name="s%d.slice" % number) for number in range(7)]
    (finding,) = layer_findings([*many, setting(SLICES, "0-1")], RESERVED)
    assert finding == {
        "check": "host-on-exclusive-cpus",
        "subject": "slices",
        "wanted": "host's processes run on the reserved CPUs 0-1 only",
        "found": "7 of 8 may run elsewhere: s0.slice (no limit), s1.slice (no limit), s2.slice (no limit),"
        " s3.slice (no limit), s4.slice (no limit) and 2 more",
        "remedy": "run the role housekeeping, which sets AllowedCPUs= of these units",
    }


@pytest.mark.parametrize(
    ("name", "cpus", "said"),
    [
        ("kata_overhead", None, ["systemd does not have kata_overhead", "sandbox_cgroup_only = true"]),
        ("machine.slice", "4-7", ["first decide on machine.slice", "housekeeping_exclude_slices"]),
        ("dpdk", "4-7", ["systemd does not have dpdk", "first decide on dpdk"]),
        ("system.slice", None, []),
        ("system.slice", "0-3", []),
    ],
)
def test_what_the_role_would_take_from_others_slices(name: str, cpus: str | None, said: list[str]) -> None:
    """Kata's threads, virtual machines, poll threads: they are no services that a reserved CPU is enough for."""
    (finding,) = layer_findings([setting(SLICES, cpus, "0-7", name=name)], RESERVED)
    assert all(text in finding["remedy"] for text in said)
    assert finding["remedy"].count(";") == sum(text.startswith(("systemd does", "first decide")) for text in said)


def test_fixed_interrupts_are_named_with_where_they_are() -> None:
    (finding,) = layer_findings([setting(INTERRUPTS, "0-7", "5", FIXED, "36 nvme0q1")], RESERVED)
    assert finding["found"] == "the kernel manages 1 of 1 itself, on others too: 36 nvme0q1 (CPUs 5)"


def test_a_node_that_is_booted_with_managed_irq_is_not_to_be_booted_so_again() -> None:
    fixed = [setting(INTERRUPTS, "0-7", "5", FIXED, "36 nvme0q1")]
    for managed, is_told in (("2-7", False), ("1-9", False), ("2-6", True), ("", True)):
        (finding,) = layer_findings(fixed, RESERVED, cpus(managed))
        assert finding["remedy"].startswith("boot with isolcpus=managed_irq") is is_told
        assert finding["remedy"].endswith("give the device fewer queues")


def test_irqbalance_whose_file_cri_o_writes() -> None:
    """The role would be undone by the next pod with the annotation."""
    irqbalance = Irqbalance("/f", "/f", "IRQBALANCE_BANNED_CPUS", cpus("0-1,8-63"), True, True)
    (alone,) = irqbalance_findings(irqbalance, CPUSet(), RESERVED)
    assert alone["remedy"] == "run the role housekeeping, which writes IRQBALANCE_BANNED_CPUS into /f"
    (beside,) = irqbalance_findings(irqbalance, CPUSet(), RESERVED, beside_crio=True)
    assert beside["remedy"].startswith("CRI-O writes /f for pods with irq-load-balancing.crio.io, and puts back what ")
    assert beside["remedy"].endswith("from allowed_annotations in its configuration and " + alone["remedy"])


def test_what_is_wished_for_this_node() -> None:
    wished = RESERVED._replace(layers=(WATCHDOG,), exclude_slices=("machine.slice",))
    (finding,) = layer_findings([setting(WATCHDOG, "0-7"), setting(SLICES, "", name="machine.slice")], wished)
    assert (finding["check"], finding["subject"]) == ("host-on-exclusive-cpus", "watchdog")
    assert layer_findings([setting(WATCHDOG, "0-1")], wished) == []


@pytest.mark.parametrize(
    ("affinity", "is_found"), [(None, False), ("0-1", False), ("0", False), ("0-7", True), ("0-1,9", False)]
)
def test_the_affinity_of_systemd(affinity: str | None, is_found: bool) -> None:
    assert bool(manager_findings(None if affinity is None else cpus(affinity), RESERVED)) is is_found


@pytest.mark.parametrize(
    ("affinity", "configured", "check", "remedy"),
    [
        ("0-1", ConfiguredCPUs(cpus("0-1"), "/f"), "", ""),
        (None, ConfiguredCPUs(cpus("1"), "/f"), "", ""),
        ("0-7", ConfiguredCPUs(cpus("0-1"), "/f"), "host-on-exclusive-cpus", "boot the node again"),
        ("0-7", None, "host-on-exclusive-cpus", "run the role housekeeping"),
        ("0-1", None, "housekeeping-not-lasting", "run the role housekeeping"),
        (None, ConfiguredCPUs(None, "/f"), "housekeeping-not-lasting", "run the role housekeeping"),
        ("0-1", ConfiguredCPUs(cpus("0-7"), "/f"), "housekeeping-not-lasting", "run the role housekeeping"),
    ],
)
def test_the_affinity_of_systemd_that_is_wished(
    affinity: str | None, configured: ConfiguredCPUs | None, check: str, remedy: str
) -> None:
    wished = RESERVED._replace(layers=(MANAGER,))
    found = manager_findings(None if affinity is None else cpus(affinity), wished, configured)
    assert [finding["check"] for finding in found] == ([check] if check else [])
    assert all(finding["remedy"].startswith(remedy) for finding in found)


def balance(banned: str | None, is_running: bool = True, problem: str = "") -> Irqbalance:
    return Irqbalance("/f", "/f", BANNED_LIST, None if banned is None else cpus(banned), True, is_running, problem)


@pytest.mark.parametrize(
    ("irqbalance", "isolated", "elsewhere"),
    [
        (None, "", ""),
        (balance("2-7"), "", ""),
        (balance("0-7"), "", ""),
        (balance("2-5"), "", "6-7"),
        (balance(""), "2-7", "2-7"),
        (balance(None), "", "2-7"),
        # It leaves alone what the kernel was booted to isolate.
        (balance(None), "2-7", ""),
        (balance(None, is_running=False), "", ""),
        (balance(None, problem="is not a list"), "", ""),
    ],
)
def test_irqbalance(irqbalance: Irqbalance | None, isolated: str, elsewhere: str) -> None:
    found = irqbalance_findings(irqbalance, cpus(isolated), RESERVED)
    texts = ["it runs, and may put interrupts on CPUs " + elsewhere] if elsewhere else []
    assert [finding["found"] for finding in found] == texts


@pytest.mark.parametrize(
    ("found_setting", "configured", "is_found"),
    [
        (setting(SLICES, "0-1"), None, True),
        (setting(SLICES, "0-1"), ConfiguredCPUs(cpus("0-1"), "/f"), False),
        (setting(SLICES, "0-1"), ConfiguredCPUs(cpus("0-2"), "/f"), True),
        (setting(SLICES, "0-1"), ConfiguredCPUs(None, "/f"), True),
        # This is another finding.
        (setting(SLICES, "0-7"), None, False),
        (setting(SLICES, None), None, False),
        (setting(SLICES, "0-1", None, FIXED), None, False),
        (setting(SLICES, "0-1", name="docker"), None, False),
        (setting(INTERRUPTS, "0-1"), None, False),
    ],
)
def test_what_does_not_last(found_setting: KernelSetting, configured: ConfiguredCPUs | None, is_found: bool) -> None:
    found = lasting_findings([found_setting], {"x": configured}, RESERVED)
    assert [finding["check"] for finding in found] == (["housekeeping-not-lasting"] if is_found else [])


def test_many_partitions_that_are_none() -> None:
    partition = Partition("a\n.slice", "root", "its parent is none", None, None, None)
    (finding,) = partition_findings([*[partition] * 6, partition._replace(problem="")])
    shown = "a\\n.slice (its parent is none)"
    assert finding["found"] == "others run there, too: %s and 1 more" % ", ".join([shown] * 5)
    assert partition_findings([partition._replace(problem="")]) == []
