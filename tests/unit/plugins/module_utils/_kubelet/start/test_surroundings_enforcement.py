# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cgroups on which a kubelet enforces what is reserved."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.surroundings import (
    cgroup_root_findings,
    node_findings,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.machines import (
    BAR,
    CPU,
    FOO,
    SYSTEMD,
    V1,
    V2,
    cgroups,
    enforced,
    told,
)


@pytest.mark.parametrize(
    "values",
    [
        {},
        enforced(),
        {"enforceNodeAllocatable": None},
        enforced("pods"),
        enforced("none", kubeReservedCgroup="/foo"),
        enforced("pods", kubeReservedCgroup="/foo", systemReservedCgroup="/bar"),
        enforced("pods", "kube-reserved", kubeReservedCgroup="/there", kubeReserved=CPU),
        enforced("system-reserved", systemReservedCgroup="there", systemReserved=CPU),
        enforced("system-reserved-compressible", systemReservedCgroup="there", reservedSystemCPUs="0"),
        enforced("kube-reserved", kubeReservedCgroup="/there.slice", kubeReserved=CPU, **SYSTEMD),
        enforced("kube-reserved", kubeReservedCgroup="/x/y/there", kubeReserved=CPU, **SYSTEMD),
        enforced("kube-reserved", kubeReservedCgroup="/x/there-is_one.slice/", kubeReserved=CPU, **SYSTEMD),
        enforced("kube-reserved", kubeReservedCgroup="-.slice", kubeReserved=CPU, **SYSTEMD),
    ],
)
def test_enforced(values: dict[str, Any]) -> None:
    machine = cgroups("there", "there.slice", "there.slice/there-is_one.slice")
    assert told(node_findings(values, machine)) == []


@pytest.mark.parametrize(
    ("values", "machine", "found"),
    [
        (
            enforced("kube-reserved", kubeReservedCgroup="/foo"),
            V1,
            [
                (
                    FOO,
                    (
                        'Failed to enforce Kube Reserved Cgroup Limits on "/foo":'
                        ' ["foo"] cgroup is not configured properly'
                    ),
                )
            ],
        ),
        # It is not looked for.
        (
            enforced("kube-reserved", kubeReservedCgroup="/there", kubeReserved={}, reservedSystemCPUs="0"),
            V1,
            [
                (
                    FOO,
                    (
                        'Failed to enforce Kube Reserved Cgroup Limits on "/there":'
                        ' ["there"] cgroup is not configured properly'
                    ),
                )
            ],
        ),
        (
            enforced("pods", "system-reserved-compressible", systemReservedCgroup="/bar"),
            V1,
            [
                (
                    BAR,
                    (
                        'Failed to enforce System Reserved Compressible Cgroup Limits on "/bar":'
                        ' ["bar"] cgroup is not configured properly'
                    ),
                )
            ],
        ),
        (
            enforced("pods", "system-reserved", systemReservedCgroup="bar", systemReserved=CPU),
            V1,
            [
                (
                    BAR,
                    (
                        'Failed to enforce System Reserved Cgroup Limits on "bar":'
                        ' cgroup ["bar"] has some missing paths: /sys/fs/cgroup'
                    ),
                )
            ],
        ),
        (
            enforced("kube-reserved-compressible", kubeReservedCgroup="/a/b", kubeReserved=CPU),
            V2,
            [
                (
                    FOO,
                    (
                        'Failed to enforce Kube Reserved Compressible Cgroup Limits on "/a/b":'
                        ' could not read controllers for cgroup ["a" "b"]:'
                        " open /sys/fs/cgroup/a/b/cgroup.controllers: no such file or directory"
                    ),
                )
            ],
        ),
        # Of a path systemd's driver takes the last part.
        (
            enforced("kube-reserved", kubeReservedCgroup="/x/kube-tools_1.slice", kubeReserved=CPU, **SYSTEMD),
            V2,
            [
                (
                    FOO,
                    (
                        'Failed to enforce Kube Reserved Cgroup Limits on "/x/kube-tools_1.slice":'
                        ' could not read controllers for cgroup ["kube" "tools-1"]:'
                        " open /sys/fs/cgroup/kube.slice/kube-tools_1.slice/cgroup.controllers:"
                        " no such file or directory"
                    ),
                )
            ],
        ),
        (
            enforced("kube-reserved", kubeReservedCgroup="/kube--tools", kubeReserved=CPU, **SYSTEMD),
            V2,
            [
                (
                    FOO,
                    (
                        "error converting cgroup name [[kube  tools]] to systemd format:"
                        " invalid slice name: kube--tools.slice"
                    ),
                )
            ],
        ),
        (
            enforced("kube-reserved", kubeReservedCgroup="//", kubeReserved=CPU, **SYSTEMD),
            V2,
            [(FOO, "error converting cgroup name [[/]] to systemd format: invalid slice name: /.slice")],
        ),
        (
            enforced("kube-reserved", kubeReservedCgroup='/a"', kubeReserved=CPU),
            V1,
            [
                (
                    FOO,
                    (
                        r'Failed to enforce Kube Reserved Cgroup Limits on "/a\"":'
                        r' cgroup ["a\""] has some missing paths: /sys/fs/cgroup'
                    ),
                )
            ],
        ),
        # In the order of the kubelet.
        (
            enforced(
                "kube-reserved-compressible",
                "kube-reserved",
                "system-reserved-compressible",
                "system-reserved",
                kubeReservedCgroup="/foo",
                systemReservedCgroup="/bar",
            ),
            V1,
            [
                (where, 'Failed to enforce %s Cgroup Limits on "/%s": ["%s"] cgroup is not configured properly' % words)
                for where, words in (
                    (BAR, ("System Reserved", "bar", "bar")),
                    (FOO, ("Kube Reserved", "foo", "foo")),
                    (BAR, ("System Reserved Compressible", "bar", "bar")),
                    (FOO, ("Kube Reserved Compressible", "foo", "foo")),
                )
            ],
        ),
    ],
)
def test_not_enforced(values: dict[str, Any], machine: Host, found: list[tuple[str, str]]) -> None:
    assert told(node_findings(values, cgroups("there", machine=machine))) == found


def test_cgroups_that_cannot_be_seen() -> None:
    values = enforced("kube-reserved", kubeReservedCgroup="/foo", kubeReserved=CPU)
    reason = "it cannot be seen whether the kubelet finds the cgroup /foo"
    assert told(node_findings(values, V2)) == [(FOO, reason)]


@pytest.mark.parametrize(
    ("values", "path"),
    [
        (SYSTEMD, "kubepods.slice"),
        ({}, "kubepods"),
        ({"cgroupRoot": "/kubelet", **SYSTEMD}, "kubelet.slice/kubelet-kubepods.slice"),
        ({"cgroupRoot": "/kubelet"}, "kubelet/kubepods"),
    ],
)
def test_pods_whose_cgroup_lacks_a_controller(values: dict[str, Any], path: str) -> None:
    """Whether the kernel gives it once the kubelet asks is not to be seen."""
    machine = V2._replace(cgroup_lacks=lambda asked: ["cpu"] if asked == path else [])
    (doubt,) = node_findings(values, machine)
    assert isinstance(doubt, Unknown)
    assert doubt.reason.startswith("/%s has not the controller cpu, which the topmost cgroup has: " % path)
    assert not list(node_findings(values, machine._replace(cgroup_v1=True)))
    assert not list(node_findings({**values, "cgroupsPerQOS": False}, machine))


SERVICE = "/system.slice/kubelet.service"


@pytest.mark.parametrize(
    ("values", "cause", "remedy"),
    [
        # It is there, and not what the kubelet looks for.
        (
            enforced("kube-reserved", kubeReservedCgroup=SERVICE, kubeReserved=CPU, **SYSTEMD),
            "there is no cgroup /kubelet.service.slice, which the kubelet makes of %s with the systemd driver"
            % SERVICE,
            "name a slice that is there, as /kube.slice, or remove it from enforceNodeAllocatable",
        ),
        (
            enforced("system-reserved", systemReservedCgroup="/system", systemReserved=CPU, **SYSTEMD),
            "there is no cgroup /system.slice, which the kubelet makes of /system with the systemd driver",
            "name a slice that is there, as /kube.slice, or remove it from enforceNodeAllocatable",
        ),
        (
            enforced("kube-reserved", kubeReservedCgroup="/a-b.slice", kubeReserved=CPU, **SYSTEMD),
            "there is no cgroup /a.slice/a-b.slice, which the kubelet makes of /a-b.slice with the systemd driver",
            "name a slice that is there, as /kube.slice, or remove it from enforceNodeAllocatable",
        ),
        (
            enforced("kube-reserved", kubeReservedCgroup="/kube.slice", kubeReserved=CPU, **SYSTEMD),
            "there is no cgroup /kube.slice",
            "make the cgroup before the kubelet starts, or remove it from enforceNodeAllocatable",
        ),
        (
            enforced("kube-reserved", kubeReservedCgroup="/system.slice/gone.service", kubeReserved=CPU),
            "there is no cgroup /system.slice/gone.service",
            "make the cgroup before the kubelet starts, or remove it from enforceNodeAllocatable",
        ),
    ],
)
@pytest.mark.parametrize("machine", [cgroups("system.slice/kubelet.service", machine=V1), cgroups()])
def test_the_cgroup_that_is_named_is_that_for_which_the_kubelet_looks(
    values: dict[str, Any], cause: str, remedy: str, machine: Host
) -> None:
    (finding,) = node_findings(values, machine)
    assert isinstance(finding, Finding)
    assert (finding.cause.partition("; with cgroup v1")[0], finding.remedy) == (cause, remedy)
    # Where nothing can be seen, it is named, too.
    (doubt,) = node_findings(values, Host(machine.topology))
    assert isinstance(doubt, Unknown)
    named = cause.partition(",")[0].replace("there is no", "the")
    assert doubt.reason == "it cannot be seen whether the kubelet finds %s" % named


def test_a_root_becomes_a_slice_part_by_part() -> None:
    values = {"cgroupRoot": "/a/b.slice", **SYSTEMD}
    (finding,) = cgroup_root_findings(values, cgroups())
    assert isinstance(finding, Finding)
    assert (
        finding.cause
        == "there is no cgroup /a.slice/a-b.slice.slice, which the kubelet makes of /a/b.slice with the systemd driver"
    )
    assert finding.remedy == "make the cgroup before the kubelet starts, or remove cgroupRoot"
