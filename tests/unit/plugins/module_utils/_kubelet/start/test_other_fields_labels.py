# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.other_fields import (
    labels_fault,
    name_faults,
    read_taints,
    value_faults,
)

CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName' or 'my.name' or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue' or 'my_value' or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
OPTIONAL = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
NAMESPACE = (
    "\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io,"
    " node.kubernetes.io) or be in the specifically allowed set (beta.kubernetes.io/arch,"
    " beta.kubernetes.io/instance-type, beta.kubernetes.io/os, failure-domain.beta.kubernetes.io/region,"
    " failure-domain.beta.kubernetes.io/zone, kubernetes.io/arch, kubernetes.io/hostname, kubernetes.io/os,"
    " node.kubernetes.io/instance-type, topology.kubernetes.io/region, topology.kubernetes.io/zone)"
)
UNKNOWN = "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [%s]" + NAMESPACE


@pytest.mark.parametrize(
    ("key", "minor", "faults"),
    [
        ("a", 36, []),
        ("example.com/A_b.c-1", 36, []),
        ("a" * 63, 36, []),
        ("a" * 64, 36, ["name part must be no more than 63 bytes"]),
        ("", 36, ["name part must be non-empty", "name part " + CHARACTERS]),
        ("-a", 36, ["name part " + CHARACTERS]),
        ("a\n", 36, ["name part " + CHARACTERS]),
        ("/a", 36, ["prefix part must be non-empty"]),
        ("A.com/a", 36, ["prefix part " + PREFIX]),
        ("a..b/a", 36, ["prefix part " + PREFIX]),
        ("a" * 254 + "/a", 36, ["prefix part must be no more than 253 bytes"]),
        ("a/b/c", 36, ["a valid label key " + CHARACTERS + OPTIONAL]),
        ("a/b/c", 33, ["a qualified name " + CHARACTERS + OPTIONAL]),
    ],
)
def test_keys(key: str, minor: int, faults: list[str]) -> None:
    assert name_faults(key, minor) == faults


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ("", []),
        ("a.b", []),
        ("a b", [VALUE]),
        ("\u00e9" * 32, ["must be no more than 63 bytes", VALUE]),
        ("\udcff", [VALUE]),
    ],
)
def test_values(value: str, faults: list[str]) -> None:
    assert value_faults(value) == faults


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ({}, ""),
        ({"a": "b", "kubernetes.io/arch": "amd64", "x.node.kubernetes.io/y": "", "kubelet.kubernetes.io/z": "1"}, ""),
        ({"kubernetes.io": "no"}, ""),
        ({"node-role.kubernetes.io/x": "y"}, UNKNOWN % "node-role.kubernetes.io/x"),
        ({"k8s.io/b": "", "a.k8s.io/a": " ", "kubernetes.io/c": ""}, UNKNOWN % "a.k8s.io/a k8s.io/b kubernetes.io/c"),
        ({"a": " "}, "invalid node labels: ' ' - " + VALUE),
        ({"-": "-"}, "invalid node labels: '-' - name part " + CHARACTERS + ", " + VALUE),
        ({"a": " ", "b": "-"}, "invalid node labels: '"),  # in random order
    ],
)
def test_labels(labels: dict[str, str], text: str) -> None:
    assert labels_fault(labels, 36) == text


@pytest.mark.parametrize(
    ("text", "taints"),
    [
        ("", []),
        ("a=b:NoSchedule,c:NoExecute", [("a", "b", "NoSchedule"), ("c", "", "NoExecute")]),
        ("a:NoSchedule,a:PreferNoSchedule", [("a", "", "NoSchedule"), ("a", "", "PreferNoSchedule")]),
        ("a-,b:NoSchedule-", []),  # to be removed
    ],
)
def test_taints(text: str, taints: list[tuple[str, str, str]]) -> None:
    found = [(taint["key"], taint["value"], taint["effect"]) for taint in read_taints(text, 36)]
    assert found == taints


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a", "invalid taint spec: a"),
        ("a:b:c", "invalid taint spec: a:b:c"),
        ("a=b=c:NoSchedule", "invalid taint spec: a=b=c:NoSchedule"),
        ("a:Foo", "invalid taint effect: Foo, unsupported taint effect"),
        ("a=b", "invalid taint spec: a=b, name part " + CHARACTERS),
        ("a= :NoSchedule", "invalid taint spec: a= :NoSchedule, " + VALUE),
        ("/a:NoSchedule", "invalid taint spec: /a:NoSchedule, prefix part must be non-empty"),
        (",", "invalid taint spec: , name part must be non-empty; name part " + CHARACTERS),
        ("a=b:NoSchedule,a:NoSchedule", "duplicated taints with the same key and effect: {a  NoSchedule <nil>}"),
    ],
)
def test_taints_that_are_refused(text: str, fault: str) -> None:
    with pytest.raises(GoError) as error:
        read_taints(text, 36)
    assert str(error.value) == fault
