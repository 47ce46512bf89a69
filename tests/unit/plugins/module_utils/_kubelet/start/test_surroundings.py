# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet needs of its machine: swap, the root of its cgroups, kernel flags, the driver, the system's cgroup."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.surroundings import (
    cgroup_root_findings,
    node_findings,
    swap_findings,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.machines import (
    CPU,
    FOO,
    SYSTEMD,
    V1,
    V2,
    cgroups,
    enforced,
    told,
)

# --- swap ------------------------------------------------------------------------------------------------

LIMITED = {"memorySwap": {"swapBehavior": "LimitedSwap"}}
NO_LIMIT = (
    "memorySwap.swapBehavior",
    "swap feature is enabled and LimitedSwap but it is only supported with cgroupv2",
)
SWAP_ON = (
    "failSwapOn",
    "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false",
)


@pytest.mark.parametrize(
    ("values", "has_gate", "machine", "found"),
    [
        ({}, True, V1, []),
        (LIMITED, True, V1, [NO_LIMIT]),
        (LIMITED, False, V1, []),
        (LIMITED, True, V2, []),
        ({"memorySwap": {"swapBehavior": "NoSwap"}}, True, V1, []),
        ({"memorySwap": {"swapBehavior": ""}}, True, V1, []),
        ({"memorySwap": {}}, True, V1, []),
        ({"memorySwap": None}, True, V1, []),
        ({"failSwapOn": True}, True, V2, []),
        ({}, True, V2._replace(swap_on=True), [SWAP_ON]),
        ({}, False, V2._replace(swap_on=True), [SWAP_ON]),
        ({"failSwapOn": True}, True, V2._replace(swap_on=True), [SWAP_ON]),
        ({"failSwapOn": False}, True, V2._replace(swap_on=True), []),
        ({**LIMITED, "failSwapOn": False}, True, V1._replace(swap_on=True), [NO_LIMIT]),
        (LIMITED, True, V1._replace(swap_on=True), [NO_LIMIT, SWAP_ON]),
    ],
)
def test_swap(values: dict[str, Any], has_gate: bool, machine: Host, found: list[tuple[str, str]]) -> None:
    assert told(swap_findings(values, has_gate, machine)) == found


# --- the root of cgroups ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"cgroupRoot": ""},
        {"cgroupRoot": None},
        {"cgroupRoot": "/"},
        {"cgroupRoot": "//"},
        {"cgroupRoot": "."},
        {"cgroupRoot": "/there"},
        {"cgroupRoot": "there"},
        {"cgroupRoot": "//there/"},
        {"cgroupRoot": "/there/./below"},
        {"cgroupRoot": "/there/../there"},
        {"cgroupRoot": "/missing", "cgroupsPerQOS": False},
        {"cgroupRoot": "/", **SYSTEMD},
        {"cgroupRoot": "//", **SYSTEMD},
        {"cgroupRoot": "/there", **SYSTEMD},
        {"cgroupRoot": "/there/below", **SYSTEMD},
        {"cgroupRoot": "/a-b", **SYSTEMD},
    ],
)
@pytest.mark.parametrize("machine", [V1, V2])
def test_a_root_that_is_there(values: dict[str, Any], machine: Host) -> None:
    paths = ("there", "there/below", "there.slice", "there.slice/there-below.slice", "a_b.slice")
    assert told(cgroup_root_findings(values, cgroups(*paths, machine=machine))) == []


@pytest.mark.parametrize(
    ("values", "machine", "text"),
    [
        # In which hierarchies it is missing follows, in random order.
        (
            {"cgroupRoot": "/nonexistent"},
            V1,
            'invalid configuration: cgroup ["nonexistent"] has some missing paths: /sys/fs/cgroup',
        ),
        (
            {"cgroupRoot": "/a/b"},
            V1,
            'invalid configuration: cgroup ["a" "b"] has some missing paths: /sys/fs/cgroup',
        ),
        (
            {"cgroupRoot": "/nonexistent"},
            V2,
            (
                'invalid configuration: could not read controllers for cgroup ["nonexistent"]:'
                " open /sys/fs/cgroup/nonexistent/cgroup.controllers: no such file or directory"
            ),
        ),
        (
            {"cgroupRoot": "a//b/", "cgroupsPerQOS": True},
            V2,
            (
                'invalid configuration: could not read controllers for cgroup ["a" "" "b" ""]:'
                " open /sys/fs/cgroup/a/b/cgroup.controllers: no such file or directory"
            ),
        ),
        (
            {"cgroupRoot": "/../a"},
            V2,
            (
                'invalid configuration: could not read controllers for cgroup [".." "a"]:'
                " open /sys/fs/a/cgroup.controllers: no such file or directory"
            ),
        ),
        # Its parts become slices.
        (
            {"cgroupRoot": "/a-b/c", **SYSTEMD},
            V2,
            (
                'invalid configuration: could not read controllers for cgroup ["a-b" "c"]:'
                " open /sys/fs/cgroup/a_b.slice/a_b-c.slice/cgroup.controllers: no such file or directory"
            ),
        ),
        (
            {"cgroupRoot": "/a.slice", **SYSTEMD},
            V2,
            (
                'invalid configuration: could not read controllers for cgroup ["a.slice"]:'
                " open /sys/fs/cgroup/a.slice.slice/cgroup.controllers: no such file or directory"
            ),
        ),
        # No slice can have this name: a panic.
        (
            {"cgroupRoot": "/a/", **SYSTEMD},
            V2,
            "error converting cgroup name [[a ]] to systemd format: invalid slice name: a-.slice",
        ),
        (
            {"cgroupRoot": "///", **SYSTEMD},
            V1,
            "error converting cgroup name [[  ]] to systemd format: invalid slice name: --.slice",
        ),
    ],
)
def test_a_root_that_is_missing(values: dict[str, Any], machine: Host, text: str) -> None:
    assert told(cgroup_root_findings(values, cgroups(machine=machine))) == [("cgroupRoot", text)]


def test_a_root_that_cannot_be_seen() -> None:
    reason = "it cannot be seen whether the kubelet finds the cgroup /a"
    assert told(cgroup_root_findings({"cgroupRoot": "/a"}, V2)) == [("cgroupRoot", reason)]
    # The topmost is there.
    assert told(cgroup_root_findings({"cgroupRoot": "/"}, V2)) == []


# --- the kernel's flags ----------------------------------------------------------------------------------

PROTECTED = {"protectKernelDefaults": True}
FLAGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}


def flags(**found: int | None) -> Host:
    """Return a machine with these flags; the last part of each name."""
    values = {name: found.get(name.rpartition("/")[2], wanted) for name, wanted in FLAGS.items()}
    read: Callable[[str], int | None] = values.__getitem__
    return V2._replace(kernel_flag=read)


@pytest.mark.parametrize(
    ("machine", "found"),
    [
        (flags(), []),
        (flags(panic=0), ["invalid kernel flag: kernel/panic, expected value: 10, actual value: 0"]),
        (
            flags(overcommit_memory=0, root_maxbytes=20000),
            [
                "invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0",
                "invalid kernel flag: kernel/keys/root_maxbytes, expected value: 25000000, actual value: 20000",
            ],
        ),
        (flags(panic_on_oops=None), ["/proc/sys/kernel/panic_on_oops is not among the node's files"]),
        # Of many one is told, and what is certain is told beside it.
        (
            flags(overcommit_memory=None, panic_on_oom=1, root_maxkeys=None),
            [
                "invalid kernel flag: vm/panic_on_oom, expected value: 0, actual value: 1",
                "/proc/sys/vm/overcommit_memory is not among the node's files",
            ],
        ),
        (V2, ["/proc/sys/vm/overcommit_memory is not among the node's files"]),
    ],
)
def test_kernel_flags(machine: Host, found: list[str]) -> None:
    assert told(node_findings(PROTECTED, machine)) == [("protectKernelDefaults", text) for text in found]
    for values in ({}, {"protectKernelDefaults": False}, {"protectKernelDefaults": None}):
        assert told(node_findings(values, machine)) == []


def test_the_remedy_names_the_sysctl() -> None:
    (finding,) = node_findings(PROTECTED, flags(root_maxkeys=5))
    assert isinstance(finding, Finding)
    assert finding.remedy == (
        "set kernel.keys.root_maxkeys = 1000000 in /etc/sysctl.d, or remove protectKernelDefaults"
    )


# --- the driver ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "has_systemd", "is_refused"),
    [
        (SYSTEMD, False, True),
        ({**SYSTEMD, "cgroupsPerQOS": True}, False, True),
        ({**SYSTEMD, "cgroupsPerQOS": False}, False, False),
        (SYSTEMD, True, False),
        (SYSTEMD, None, False),
        ({"cgroupDriver": "cgroupfs"}, False, False),
        ({"cgroupDriver": ""}, False, False),
        ({}, False, False),
    ],
)
def test_the_driver(values: dict[str, Any], has_systemd: bool | None, is_refused: bool) -> None:
    text = "systemd not running on this host, cannot use systemd cgroups manager"
    found = told(node_findings(values, V2._replace(has_systemd=has_systemd)))
    assert found == [("cgroupDriver", text)] * is_refused


# --- systemCgroups ---------------------------------------------------------------------------------------


def test_the_cgroup_of_the_system() -> None:
    assert told(node_findings({"systemCgroups": "/"}, V2)) == [
        ("systemCgroups", 'system container cannot be root ("/")')
    ]
    for name in ("", None, "/foo", "foo", "//"):
        assert told(node_findings({"systemCgroups": name, "cgroupRoot": "/"}, V2)) == []


def test_all_is_told_in_the_order_of_the_kubelet() -> None:
    values = {
        **PROTECTED,
        **SYSTEMD,
        **enforced("kube-reserved", kubeReservedCgroup="/foo", kubeReserved=CPU),
        "systemCgroups": "/",
    }
    machine = flags(panic=0)._replace(has_systemd=False, lacks_cgroup=lambda _path: ["/sys/fs/cgroup"])
    assert [where for where, _text in told(node_findings(values, machine))] == [
        "protectKernelDefaults",
        "cgroupDriver",
        FOO,
        "systemCgroups",
    ]


NAMES = st.text() | st.text(alphabet="ab/-_.", max_size=20).map(lambda text: text + ".slice")


@given(NAMES, st.sampled_from(["systemd", "cgroupfs"]), st.booleans())
def test_any_text_is_a_cgroup_or_refused(name: str, driver: str, cgroup_v1: bool) -> None:
    values = enforced(
        "kube-reserved",
        cgroupDriver=driver,
        cgroupRoot=name,
        kubeReserved=CPU,
        kubeReservedCgroup=name,
    )
    asked: list[str] = []

    def lacks(path: str) -> list[str]:
        asked.append(path)
        return ["/sys/fs/cgroup"]

    machine = V2._replace(cgroup_v1=cgroup_v1, lacks_cgroup=lacks)
    found = told([*cgroup_root_findings(values, machine), *node_findings(values, machine)])
    assert len(found) <= 2
    assert all(path and not path.startswith("/") for path in asked)
