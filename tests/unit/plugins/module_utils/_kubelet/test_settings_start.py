# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kubelet would start with the settings, with which CPU manager, and the refusal where it would not."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import (
    WOULD_NOT_START,
    changes,
    check_wishes,
    found_settings,
    needed_config,
    start_error,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    Prediction,
    predict_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.tests.machines.start import manager_config
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.settings_cases import (
    file,
    machine,
)


def config(text: str = "", name: str = "1s4c2t", minor: int = 36, **settings: Any) -> CPUManagerConfig:
    """Return the CPU manager's configuration with these settings; `text` is what the file has beside them."""
    return manager_config(_configuration(text, settings), machine(name, minor))


def _configuration(text: str, settings: Mapping[str, Any]) -> Configuration:
    """Return what the file becomes, without what goes with the settings."""
    before = file(text)
    return before.with_changes(changes(settings, found_settings(before, settings)))


def test_policy_none() -> None:
    assert config() == CPUManagerConfig("none", cpus("0-7"))
    assert config(reserved_system_cpus="0-7") == CPUManagerConfig("none", cpus("0-7"))


def test_policy_static() -> None:
    assert config(cpu_manager_policy="static", reserved_system_cpus="1,3") == CPUManagerConfig(
        "static", cpus("0-7"), cpus("1,3")
    )
    assert config(cpu_manager_policy="static", kube_reserved_cpu="1500m", system_reserved_cpu="500m") == (
        CPUManagerConfig("static", cpus("0-7"), cpus("0,4"))
    )
    # Named CPUs take the place of both.
    assert config(
        cpu_manager_policy="static",
        reserved_system_cpus="3",
        kube_reserved_cpu="7",
        cpu_manager_policy_options={"strict-cpu-reservation": "true"},
    ) == CPUManagerConfig("static", cpus("0-7"), cpus("3"), strict_reservation=True)


def test_options_shape_the_reservation() -> None:
    options = {"distribute-cpus-across-numa": "true"}
    found = config(
        name="2s1n2c2t", cpu_manager_policy="static", kube_reserved_cpu="6", cpu_manager_policy_options=options
    )
    assert found.reserved == cpus("0-4,6")


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"cpu_manager_policy": "static"},
        (
            "reserved_system_cpus: the kubelet would not start:"
            " [cpumanager] unable to determine reserved CPU resources for static policy"
            " (the static policy needs a reserved CPU, and none is configured);"
            " set reservedSystemCPUs, or a cpu in kubeReserved or systemReserved"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "kube_reserved_cpu": "9"},
        (
            "reserved_system_cpus: the kubelet would not start: new static policy error:"
            " [cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 9)"
            " (the static policy reserves 9 CPUs);"
            " reserve fewer with reservedSystemCPUs, kubeReserved and systemReserved"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "reserved_system_cpus": "0,8-9"},
        (
            "reserved_system_cpus: the kubelet would not start: reserved-cpus: 0,8-9 is not a subset of online-cpus:"
            " 0-7 (the node has no CPUs 8-9, or they are offline); take others, or switch them on"
        ),
    ),
    (
        {"reserved_system_cpus": "8"},  # also with the policy none
        (
            "reserved_system_cpus: the kubelet would not start: reserved-cpus: 8 is not a subset of online-cpus:"
            " 0-7 (the node has no CPUs 8, or they are offline); take others, or switch them on"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "reserved_system_cpus": "0-7"},
        (
            "reserving all of the CPUs 0-7 leaves none for any pod under the static policy; reserve fewer with"
            " reserved_system_cpus, or kube_reserved_cpu and system_reserved_cpu"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "kube_reserved_cpu": "7500m"},
        (
            "reserving all of the CPUs 0-7 leaves none for any pod under the static policy; reserve fewer with"
            " reserved_system_cpus, or kube_reserved_cpu and system_reserved_cpu"
        ),
    ),
    (
        {"cpu_manager_policy_options": {"full-pcpus-only": "true", "align-by-socket": "false"}},
        (
            "cpu_manager_policy_options: the kubelet would not start: new none policy error: None policy: received"
            " unsupported options=map[align-by-socket:false full-pcpus-only:true]"
            " (options go with the static policy only);"
            " remove cpuManagerPolicyOptions, or set cpuManagerPolicy: static"
        ),
    ),
    (
        {
            "cpu_manager_policy": "static",
            "cpu_manager_policy_options": {"full-pcpus": "true"},
            "reserved_system_cpus": "0",
        },
        (
            "cpu_manager_policy_options.full-pcpus: the kubelet would not start: new static policy error:"
            ' unknown CPU Manager Policy option: "full-pcpus" (the option cannot be used); the kubelet 1.36 has'
            " align-by-socket, distribute-cpus-across-cores, distribute-cpus-across-numa, full-pcpus-only,"
            " prefer-align-cpus-by-uncorecache, strict-cpu-reservation"
        ),
    ),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError) as caught:
        config(**settings)
    assert str(caught.value) == message
    assert (caught.value.kind == WOULD_NOT_START) == ("would not start" in message)


def test_offline_cpus_cannot_be_reserved() -> None:
    with pytest.raises(RefusedError, match=r"0,4 is not a subset of online-cpus: 0-3,5-7 \(the node has no CPUs 4,"):
        config(name="1s4c2t+offline4", reserved_system_cpus="0,4")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("systemReservedCgroup: /system\n", "systemReservedCgroup"),
        ("kubeReservedCgroup: /kube\n", "kubeReservedCgroup"),
        ("systemReservedCgroup: /system\nkubeReservedCgroup: /kube\n", "systemReservedCgroup and kubeReservedCgroup"),
    ],
)
def test_named_cpus_and_cgroups(text: str, names: str) -> None:
    with pytest.raises(RefusedError) as caught:
        config(text, reserved_system_cpus="0")
    assert str(caught.value) == (
        "reserved_system_cpus: the kubelet would not start: invalid configuration: can't use reservedSystemCPUs"
        " (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup"
        " (--kube-reserved-cgroup) (%s is set); remove %s, or reserve with kubeReserved and systemReserved"
        % (names, names)
    )
    assert config(text, kube_reserved_cpu="1").policy_name == "none"
    assert config('systemReservedCgroup: ""\n', reserved_system_cpus="0").policy_name == "none"


def test_a_kubelet_whose_cpu_manager_is_off() -> None:
    with pytest.raises(RefusedError) as caught:
        config("featureGates: {CPUManager: false}\n", minor=25)
    assert (str(caught.value), caught.value.kind) == (
        "it cannot be determined with what the CPU manager would start: the CPU manager is off",
        WOULD_NOT_START,
    )
    # What cannot be seen keeps nothing from being told: the configuration alone decides about the CPU manager.
    assert config("protectKernelDefaults: true\n") == CPUManagerConfig("none", cpus("0-7"))


def test_what_the_kubelet_says_before_its_refusal() -> None:
    with pytest.raises(RefusedError) as caught:
        needed_config(Prediction([Finding("is wrong", "why", "do it", True, "cpuManagerPolicy", "failed: ")]))
    assert str(caught.value) == "cpu_manager_policy: the kubelet would not start: failed: is wrong (why); do it"
    with pytest.raises(RefusedError) as caught:
        needed_config(Prediction([], [Unknown("it cannot be seen", "/x"), Unknown("nor can that", "/y")]))
    assert str(caught.value) == (
        "it cannot be determined with what the CPU manager would start: it cannot be seen; nor can that"
    )


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("cpuManagerPolicy", "cpu_manager_policy"),
        ("cpuManagerPolicyOptions.full-pcpus", "cpu_manager_policy_options.full-pcpus"),
        ("kubeReserved.cpu", "kube_reserved_cpu"),
        ("kubeReserved.memory", "kube_reserved_memory"),
        ("kubeReserved.pid", "kubeReserved.pid"),
        ("kubeReserved", "kubeReserved"),
        ("reservedMemory[0].limits.memory", "reserved_memory[0].limits.memory"),
        ("featureGates.CPUManager", "featureGates.CPUManager"),
        ("cpuManagerPolicyX", "cpuManagerPolicyX"),
        ("/var/lib/kubelet/config.yaml", "/var/lib/kubelet/config.yaml"),
        ("", ""),
    ],
)
def test_a_refusal_is_under_the_name_of_the_setting(where: str, named: str) -> None:
    error = start_error(Finding("is wrong", "why", "do it", True, where))
    assert (error.where, error.kind) == (named, WOULD_NOT_START)


def test_a_reservation_of_all_cpus_is_a_wish_that_nobody_can_have() -> None:
    check_wishes(CPUManagerConfig("none", cpus("0-7"), cpus("0-7")))
    check_wishes(CPUManagerConfig("static", cpus("0-7"), cpus("0-6")))
    with pytest.raises(RefusedError, match=r"^reserving all of the CPUs 0-7 leaves none"):
        check_wishes(CPUManagerConfig("static", cpus("0-7"), cpus("0-7")))


STATIC: dict[str, Any] = {"cpu_manager_policy": "static", "kube_reserved_cpu": "1"}
ALPHA = "featureGates:\n  CPUManagerPolicyAlphaOptions: true\n"
SOCKET = {"align-by-socket": "true"}


def test_align_by_socket() -> None:
    assert config(ALPHA, cpu_manager_policy_options=SOCKET, topology_manager_policy="restricted", **STATIC)
    with pytest.raises(RefusedError) as caught:
        config(ALPHA, cpu_manager_policy_options=SOCKET, topology_manager_policy="single-numa-node", **STATIC)
    assert str(caught.value) == (
        "cpu_manager_policy_options.align-by-socket: the kubelet would not start: new static policy error:"
        " Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
        " (align-by-socket does not go with this); drop one of the two"
    )
    socket = r"^cpu_manager_policy_options\.align-by-socket: the kubelet .* error: Align by socket is not compatible"
    with pytest.raises(RefusedError, match=socket):
        config(ALPHA, "1n2s2c", cpu_manager_policy_options=SOCKET, **STATIC)
    # What is off disturbs nothing.
    off = {"align-by-socket": "false"}
    assert config(ALPHA, "1n2s2c", cpu_manager_policy_options=off, topology_manager_policy="single-numa-node", **STATIC)


@pytest.mark.parametrize(
    ("gates", "minor", "option", "accepted"),
    [
        ("", 36, "full-pcpus-only", True),
        ("", 36, "distribute-cpus-across-numa", True),
        ("featureGates:\n  CPUManagerPolicyBetaOptions: false\n", 36, "distribute-cpus-across-numa", False),
        ("featureGates:\n  CPUManagerPolicyBetaOptions: true\n", 36, "distribute-cpus-across-numa", True),
        ("featureGates:\n  CPUManagerPolicyBetaOptions: false\n", 36, "full-pcpus-only", True),
        ("", 32, "distribute-cpus-across-numa", False),
        (ALPHA, 32, "distribute-cpus-across-numa", True),
        ("", 36, "align-by-socket", False),
        (ALPHA, 36, "align-by-socket", True),
        ("featureGates:\n  CPUManagerPolicyAlphaOptions: false\n", 36, "align-by-socket", False),
        ("featureGates: null\n", 36, "full-pcpus-only", True),
        ("featureGates: {AllAlpha: true}\n", 36, "align-by-socket", True),
        ("featureGates: {AllAlpha: true, CPUManagerPolicyAlphaOptions: false}\n", 36, "align-by-socket", False),
        ("featureGates: {AllBeta: false}\n", 36, "distribute-cpus-across-numa", False),
        ("", 31, "strict-cpu-reservation", False),
    ],
)
def test_feature_gates_and_version(gates: str, minor: int, option: str, accepted: bool) -> None:
    settings = {**STATIC, "cpu_manager_policy_options": {option: "true"}}
    if accepted:
        checked = predict_values(_configuration(gates, settings).values, machine(minor=minor)).checked
        assert checked is not None
        assert checked.options == StaticOptions(**{option.replace("-", "_"): True})
        assert config(gates, minor=minor, **settings) == checked.cpu_manager
    else:
        with pytest.raises(RefusedError, match=r"^cpu_manager_policy_options\.%s: the kubelet would not" % option):
            config(gates, minor=minor, **settings)


MANY = "unsupported on machines with more than 8 NUMA Nodes (the node has 9 NUMA nodes)"
SET_NONE = "set topologyManagerPolicy: none, or max-allowable-numa-nodes in topologyManagerPolicyOptions"
NO_NUMBER = (
    'unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi: parsing "\u00b2": invalid'
    " syntax (the option cannot be used)"
)
MOST = "max-allowable-numa-nodes"


@pytest.mark.parametrize(
    ("nodes", "text", "refusal"),
    [
        (8, "", ()),
        (9, "", ("topology_manager_policy", MANY, SET_NONE)),
        (9, 'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "9"\n', ()),
        (9, 'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "16"\n', ()),
        (
            9,
            'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "8"\n',
            ("topology_manager_policy", MANY, SET_NONE),
        ),
        (
            9,
            'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "\u00b2"\n',
            ("topology_manager_policy_options." + MOST, NO_NUMBER, 'write a number of 8 or more, as in "16"'),
        ),
        (
            9,
            'topologyManagerPolicyOptions:\n  prefer-closest-numa-nodes: "true"\n',
            ("topology_manager_policy", MANY, SET_NONE),
        ),
        (9, "topologyManagerPolicyOptions: null\n", ("topology_manager_policy", MANY, SET_NONE)),
    ],
)
def test_many_numa_nodes(nodes: int, text: str, refusal: tuple[str, ...]) -> None:
    name = "%dn1s1c" % nodes
    assert config(text, name).all_cpus
    if not refusal:
        assert config(text, name, topology_manager_policy="best-effort").all_cpus
        return
    with pytest.raises(RefusedError) as caught:
        config(text, name, topology_manager_policy="best-effort")
    assert str(caught.value) == "%s: the kubelet would not start: %s; %s" % refusal
