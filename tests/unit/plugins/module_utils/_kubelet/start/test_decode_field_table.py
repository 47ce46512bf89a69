# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start import decode as field_table
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import (
    DEFAULTS,
    DEFAULTS_WITHOUT_FILE,
    FOLDED,
    KUBELET_CONFIGURATION,
    LIST,
    MAP,
    STRUCT,
    STRUCTS,
    Field,
    GoType,
    decode_merged,
    find_field,
)

_PLAIN = {
    value for name, value in vars(field_table).items() if name.isupper() and isinstance(value, str) and name != "GROUP"
}


def _types() -> Iterator[GoType]:
    for fields in STRUCTS.values():
        for field in fields.values():
            kind = field.type
            while kind is not None:
                yield kind
                kind = kind.item


def test_every_type_is_known() -> None:
    kinds = list(_types())
    assert {kind.kind for kind in kinds} <= _PLAIN - {KUBELET_CONFIGURATION}
    assert all((kind.kind == STRUCT) == bool(kind.struct) for kind in kinds)
    assert all((kind.kind in (MAP, LIST)) == (kind.item is not None) for kind in kinds)
    assert {kind.struct for kind in kinds if kind.struct} == set(STRUCTS) - {KUBELET_CONFIGURATION}


@pytest.mark.parametrize(
    ("struct", "name", "field"),
    [
        (KUBELET_CONFIGURATION, "maxPods", Field(GoType("int32", "int32"), False)),
        (KUBELET_CONFIGURATION, "resolvConf", Field(GoType("string", "string"), True)),
        (
            KUBELET_CONFIGURATION,
            "memoryReservationPolicy",
            Field(GoType("string", "v1beta1.MemoryReservationPolicy"), False, 36),
        ),
        (
            KUBELET_CONFIGURATION,
            "kubeReserved",
            Field(GoType("map", "map[string]string", GoType("string", "string")), False),
        ),
        (
            KUBELET_CONFIGURATION,
            "tracing",
            Field(GoType("struct", "v1.TracingConfiguration", None, "TracingConfiguration"), True),
        ),
        (
            "MemoryReservation",
            "limits",
            Field(GoType("map", "v1.ResourceList", GoType("quantity", "resource.Quantity")), False),
        ),
        ("LoggingConfiguration", "verbosity", Field(GoType("uint32", "v1.VerbosityLevel"), False)),
        ("TextOptions", "splitStream", Field(GoType("bool", "bool"), False, embedded="OutputRoutingOptions")),
    ],
)
def test_a_field(struct: str, name: str, field: Field) -> None:
    assert STRUCTS[struct][name] == field


def test_no_two_names_differ_in_case_only() -> None:
    assert {struct: len(names) for struct, names in FOLDED.items()} == {
        struct: len(fields) for struct, fields in STRUCTS.items()
    }


@pytest.mark.parametrize(
    ("key", "minor", "folds", "name"),
    [
        ("maxPods", 36, False, "maxPods"),
        ("maxpods", 36, False, None),
        ("MAXPODS", 36, True, "maxPods"),
        ("max\u0050od\u017f", 36, True, "maxPods"),  # Unicode has another s,
        ("\u212aubeReserved", 36, True, "kubeReserved"),  # and another k
        ("maxPod", 36, True, None),
        ("tlsCurvePreferences", 35, True, None),
        ("tlscurvepreferences", 35, True, None),
        ("tlsCurvePreferences", 36, False, "tlsCurvePreferences"),
    ],
)
def test_a_name(key: str, minor: int, folds: bool, name: str | None) -> None:
    assert find_field(KUBELET_CONFIGURATION, key, minor, folds) == name


def test_the_names_of_a_version() -> None:
    def names(minor: int) -> set[str | None]:
        return {find_field(KUBELET_CONFIGURATION, name, minor, False) for name in STRUCTS[KUBELET_CONFIGURATION]}

    assert names(36) - names(35) == {"memoryReservationPolicy", "tlsCurvePreferences"}
    assert names(33) - names(32) == {
        "imagePullCredentialsVerificationPolicy",
        "mergeDefaultEvictionSettings",
        "preloadedImagesVerificationAllowlist",
        "userNamespaces",
    }
    assert names(32) - names(31) == {"crashLoopBackOff", "singleProcessOOMKill"}
    assert names(31) - names(30) == {"failCgroupV1"}
    assert names(30) - names(29) == {"containerLogMaxWorkers", "containerLogMonitorInterval", "podLogsDir"}
    assert names(29) - names(28) == {"imageMaximumGCAge"}
    # None was removed.
    assert names(29) - {None} < names(36)


@pytest.mark.parametrize(("minor", "name"), [(30, None), (31, "text")])
def test_a_field_of_a_struct_has_versions_too(minor: int, name: str | None) -> None:
    assert find_field("FormatOptions", "text", minor, False) == name


@pytest.mark.parametrize("defaults", [DEFAULTS, DEFAULTS_WITHOUT_FILE])
def test_the_defaults_are_values_of_the_fields(defaults: Mapping[str, Any]) -> None:
    assert decode_merged(defaults, 36).keys() == defaults.keys()
