# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drop-ins: how they are merged with the file, their defaults, and their order."""

from __future__ import annotations

from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import EVICTION_HARD
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import KUBELET_CONFIGURATION
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import (
    StartError,
    UnpredictableError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import (
    SPELLING,
    UNKNOWN,
    Absent,
    Ignored,
    OddMember,
    drop_in_order,
    load_configuration,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.load_cases import (
    DIRECTORY,
    HEAD,
    NO_HEAD,
    PATH,
    RESTARTS,
    STRUCT,
    given_values,
    load_files,
    refusal,
    takes_all,
)

_WALK = 'failed to merge kubelet configs: failed to walk through kubelet dropin directory "%s": ' % DIRECTORY
_DROP_IN_CONTEXT = _WALK + "failed to load kubelet dropin file, path: %s/1.conf, " % DIRECTORY
_MERGED_CONTEXT = "failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: "


@pytest.mark.parametrize(
    ("text", "drop_ins", "values"),
    [
        ("maxPods: 5", ["cpuManagerPolicy: none"], {"maxPods": 5, "cpuManagerPolicy": "none"}),
        ("", ["cpuManagerPolicy: 5", "cpuManagerPolicy: none"], {"cpuManagerPolicy": "none"}),
        ("maxPods: 5", ["maxPods: null"], {}),
        (
            "kubeReserved: {cpu: x, memory: 1Gi}",
            ["kubeReserved: {cpu: null}\nsystemReserved: {pid: '1', cpu: null}"],
            {"kubeReserved": {"memory": "1Gi"}, "systemReserved": {"pid": "1"}},
        ),
        # The default, or the file's value, is later in byte order than a spelling that begins in upper case.
        ("", ["CPUManagerPolicy: foo"], {"cpuManagerPolicy": "none"}),
        ("", ["cpumanagerpolicy: foo"], {"cpuManagerPolicy": "foo"}),
        ("kubeReserved: {cpu: '1'}", ["KubeReserved: {memory: x}"], {"kubeReserved": {"cpu": "1", "memory": "x"}}),
        # An empty list is lost on the way.
        ("enforceNodeAllocatable: []", ["maxPods: 5"], {"enforceNodeAllocatable": ["pods"], "maxPods": 5}),
        ("cpuCFSQuota: false", ["maxPods: 5.0"], {"cpuCFSQuota": False, "maxPods": 5}),
        (
            "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]",
            ["reservedMemory: [{numaNode: 1, limits: {memory: null}}]"],
            {"reservedMemory": [{"numaNode": 1, "limits": {"memory": "0"}}]},
        ),
        (
            "cpuManagerReconcilePeriod: 1h30m",
            [b'{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 7.0}'],
            {"cpuManagerReconcilePeriod": 5400 * 10**9, "maxPods": 7},
        ),
    ],
)
def test_drop_ins(text: str, drop_ins: Sequence[str | bytes], values: dict[str, Any]) -> None:
    assert given_values(load_files(text, *drop_ins)) == values


@pytest.mark.parametrize(
    ("text", "drop_in", "field", "value"),
    [
        ("", "maxParallelImagePulls: 5", "serializeImagePulls", True),
        ("maxParallelImagePulls: 5", "maxPods: 5", "serializeImagePulls", False),
        ("", "nodeStatusUpdateFrequency: 1m", "nodeStatusReportFrequency", 300 * 10**9),
        ("nodeStatusUpdateFrequency: 1m", "maxPods: 5", "nodeStatusReportFrequency", 60 * 10**9),
        ("", "featureGates: {KubeletCrashLoopBackOffMax: false}", "crashLoopBackOff", RESTARTS),
        (
            "",
            "evictionHard: {memory.available: 1Gi}",
            "evictionHard",
            {**EVICTION_HARD, "memory.available": "1Gi"},
        ),
        ("evictionHard: {}", "evictionHard: {pid.available: 1%}", "evictionHard", {"pid.available": "1%"}),
        ("evictionHard: {}", "maxPods: 5", "evictionHard", {}),
        ("", "evictionHard: null", "evictionHard", {}),
    ],
)
def test_defaults_that_are_there_before_a_merge(text: str, drop_in: str, field: str, value: Any) -> None:
    assert load_files(text, drop_in).values[field] == value


def test_a_default_that_is_not_there() -> None:
    loaded = load_files("", "maxPods: 5", minor=34)
    assert set(loaded.values) == {
        "apiVersion", "kind", "maxPods", "evictionHard", "nodeStatusReportFrequency", "serializeImagePulls",
    }  # fmt: skip
    assert loaded.defaulted == {"evictionHard", "nodeStatusReportFrequency", "serializeImagePulls"}


@pytest.mark.parametrize(
    ("content", "context", "text"),
    [
        (b"", "error: ", 'kubelet config file "%s/1.conf" was empty' % DIRECTORY),
        (b"# c\n", "error: ", "Object 'Kind' is missing in '# c\n'"),
        (b"Kind: KubeletConfiguration\n", "error: ", "Object 'Kind' is missing in 'Kind: KubeletConfiguration\n'"),
        (b"a: [\n", "error: ", "yaml: line 1: did not find expected node content"),
        (b"[]", "error: ", "%sjson: cannot unmarshal array into Go value of type %s" % (NO_HEAD, STRUCT)),
        (b"{", "error: ", NO_HEAD + "unexpected end of JSON input"),
        (b'{"a": 1e999}', "error: ", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        (b"apiVersion: v1\nkind: Pod\n", "", "unknown apiVersion/kind: /v1, Kind=Pod"),
        (b"kind: KubeletConfiguration\n", "", "unknown apiVersion/kind: /, Kind=KubeletConfiguration"),
        (
            (HEAD + "maxPods: 1\nmaxPods: 2\nmaxPods: 3\n").encode(),
            "error: ",
            (
                'strict decoding error: yaml: unmarshal errors:\n  line 4: key "maxPods" already set in map\n'
                '  line 5: key "maxPods" already set in map'
            ),
        ),
        (
            b'{"kind": "X", "a": {"b": 1, "b": 2}, "kind": "X"}',
            "error: ",
            'strict decoding error: duplicate field "a.b", duplicate field "kind"',
        ),
    ],
)
def test_a_drop_in_that_is_refused(content: bytes, context: str, text: str) -> None:
    assert refusal("", content) == (_DROP_IN_CONTEXT + context, text)


@pytest.mark.parametrize(
    ("drop_in", "text"),
    [
        (
            "cpuManagerPolicy: 5",
            "json: cannot unmarshal number into Go struct field KubeletConfiguration.cpuManagerPolicy of type string",
        ),
        (
            "cpumanagerreconcileperiod: 5",
            (
                "json: cannot unmarshal number into Go struct field KubeletConfiguration.cpuManagerReconcilePeriod of"
                " type string"
            ),
        ),
    ],
)
def test_a_merge_that_is_refused(drop_in: str, text: str) -> None:
    assert refusal("", drop_in) == (_MERGED_CONTEXT, text)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (Absent.MISSING, "open %s/1.conf: no such file or directory" % DIRECTORY),
        (Absent.DIRECTORY, "read %s/1.conf: is a directory" % DIRECTORY),
    ],
)
def test_a_drop_in_that_cannot_be_read(state: Absent, text: str) -> None:
    with pytest.raises(StartError) as error:
        load_configuration(HEAD.encode(), [("1.conf", state)], 36, takes_all, PATH, DIRECTORY + "/")
    assert error.value.text == 'failed to read drop-in kubelet config file "%s/1.conf", error: %s' % (DIRECTORY, text)


def test_a_directory_that_is_not_there() -> None:
    with pytest.raises(StartError) as error:
        load_configuration(HEAD.encode(), Absent.MISSING, 36, takes_all, PATH, "/nonexistent")
    assert (error.value.context, error.value.text) == (
        'failed to merge kubelet configs: failed to walk through kubelet dropin directory "/nonexistent": ',
        "lstat /nonexistent: no such file or directory",
    )


def test_a_directory_of_which_nothing_can_be_told() -> None:
    with pytest.raises(UnpredictableError) as error:
        load_configuration(HEAD.encode(), Absent.UNREADABLE, 36, takes_all, PATH, DIRECTORY)
    assert (error.value.reason, error.value.where) == ("it cannot be read here", DIRECTORY)


def test_what_does_not_count_in_a_drop_in() -> None:
    loaded = load_files("", "fooBar: 1\nCPUManagerPolicy: foo")
    file = DIRECTORY + "/1.conf"
    assert loaded.ignored == (
        Ignored(
            file,
            OddMember(SPELLING, "CPUManagerPolicy", "CPUManagerPolicy", KUBELET_CONFIGURATION, "cpuManagerPolicy"),
            "",
        ),
        Ignored(file, OddMember(UNKNOWN, "fooBar", "fooBar", KUBELET_CONFIGURATION), ""),
    )


def test_the_order_of_drop_ins() -> None:
    names = ["20.conf", "10.conf", "9.conf", "a-b.conf", "a/1.conf", "a.CONF", "B.conf", ".conf", "x.yaml", "y.conf.d"]
    assert drop_in_order(names) == [".conf", "10.conf", "20.conf", "9.conf", "B.conf", "a/1.conf", "a-b.conf"]
