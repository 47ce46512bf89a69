# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notes on fields that the kubelet ignores, and on reservations that split cores."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.effective import effective_configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import (
    Reserved,
    design_notes,
    ignored_key_notes,
    reservation_notes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import harmful
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    GivenToKubelet,
    predict,
    predict_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    NONE,
    STATIC,
    CPUManagerConfig,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.settings_cases import machine

HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def written_down(configuration: Configuration) -> bytes:
    return json.dumps(configuration.values).encode("ascii")


@pytest.mark.parametrize(
    ("values", "minor", "note"),
    [
        (
            {"cpuManagerPolcy": None},
            36,
            "cpuManagerPolcy: the kubelet 1.36 has no such field, and ignores it; write cpuManagerPolicy",
        ),
        (
            {"cpumanagerpolicy": None},
            34,
            (
                "cpumanagerpolicy: the kubelet 1.34 has no such field, and ignores it; upper and lower case count;"
                " write cpuManagerPolicy"
            ),
        ),
        (
            {"memoryManagerPolicy": None},
            20,
            (
                "memoryManagerPolicy: the kubelet 1.20 has no such field, and ignores it;"
                " remove it, or upgrade to Kubernetes 1.21"
            ),
        ),
        (
            {"singleProcessOOMKill": None},
            31,
            (
                "singleProcessOOMKill: the kubelet 1.31 has no such field, and ignores it;"
                " remove it, or upgrade to Kubernetes 1.32"
            ),
        ),
        (
            {"somethingElse": None},
            36,
            "somethingElse: the kubelet 1.36 has no such field, and ignores it; check how it is spelled, or remove it",
        ),
        (
            {"some.thing": None},
            36,
            "some.thing: the kubelet 1.36 has no such field, and ignores it; check how it is spelled, or remove it",
        ),
        (
            {"authentication": {"anonymous": {"enable": True}}},
            36,
            "authentication.anonymous.enable: the kubelet 1.36 has no such field, and ignores it; write enabled",
        ),
        (
            {"reservedMemory": [{"numaNode": 0, "limit": {}}]},
            36,
            "reservedMemory[0].limit: the kubelet 1.36 has no such field, and ignores it; write limits",
        ),
    ],
)
def test_a_field_that_the_kubelet_ignores_is_a_note(values: dict[str, Any], minor: int, note: str) -> None:
    configuration = Configuration({**HEAD, "maxPods": 110, **values}, "/x")
    prediction = predict_values(configuration.values, machine(minor=minor))
    assert ignored_key_notes(prediction.ignored, configuration) == ["/x: " + note]


def test_where_nothing_is_ignored_there_is_no_note() -> None:
    configuration = Configuration({**HEAD, "maxPods": 110, "memorySwap": {}}, "/x")
    assert ignored_key_notes(predict_values(configuration.values, machine()).ignored, configuration) == []


def test_notes_on_fields_of_several_files() -> None:
    file = Configuration({**HEAD, "maxpods": 110, "fooBar": 1}, "/x")
    drop_ins = [
        Configuration({**HEAD, "cpumanagerpolicy": "none", "cpuManagerPolcy": "static", "fooBar": 2}, "/y.conf"),
        Configuration({**HEAD, "authentication": {"Anonymous": {}, "x": {}}}, "/z.conf"),
    ]
    prediction = predict(
        GivenToKubelet(
            (), written_down(file), [(drop_in.source[1:], written_down(drop_in)) for drop_in in drop_ins], "/x", "/"
        ),
        machine(),
    )
    notes = ignored_key_notes(prediction.ignored, effective_configuration(file, drop_ins, ()))
    # In drop-in files upper and lower case do not count; of a field in several files one counts.
    assert [note.split(": the")[0] for note in notes] == [
        "/x: maxpods",
        "/y.conf: fooBar",
        "/y.conf: cpuManagerPolcy",
        "/z.conf: authentication.x",
    ]


def test_what_is_in_no_configuration_is_no_note() -> None:
    gone = harmful("nobody has such a field", "remove it", "fooBar")
    assert ignored_key_notes([gone], Configuration({"maxPods": 110}, "/x")) == []


def test_a_wanted_reservation_that_splits_cores_is_a_note() -> None:
    topology = parse_name("2s1n2c2t").topology()  # a core is n, n+4

    def notes(wanted: str, found: str = "") -> list[str]:
        return reservation_notes(topology, Reserved(CPUSet.parse(wanted), False), Reserved(CPUSet.parse(found), False))

    assert notes("0,4") == notes("") == notes("0-7") == []
    assert notes("0-1") == [
        (
            "the wanted reservation 0-1 would split cores: pods would get their other threads, CPUs 4-5;"
            " reserve whole cores, as in 0-1,4-5"
        )
    ]
    assert notes("0,4,2", found="0,4")
    # Nothing changes: one note tells what is so already.
    assert notes("0-1", found="0-1") == ["the reservation 0-1 splits cores: pods get their other threads, CPUs 4-5"]


def test_that_other_pods_run_on_reserved_cpus_is_by_design() -> None:
    static = CPUManagerConfig(STATIC, CPUSet(range(8)), CPUSet((0, 4)))
    assert design_notes(static) == [
        (
            "containers without CPUs of their own run on the reserved CPUs 0,4, too, which is by design:"
            ' strict-cpu-reservation: "true" in cpuManagerPolicyOptions keeps them off (Kubernetes 1.33; 1.32 with the'
            " gate CPUManagerPolicyAlphaOptions)"
        )
    ]
    assert design_notes(static._replace(strict_reservation=True)) == []
    assert design_notes(CPUManagerConfig(NONE, CPUSet(range(8)))) == design_notes(None) == []
