# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubelet configurations are read, and keep their layout where settings are changed."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import ConfigurationError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import REMOVE, same
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.configuration_files import (
    AKS,
    FILES,
    HEAD,
    KUBEADM,
    KUBESPRAY,
    NODEADM,
    ONE_LINE,
    Changes,
    changed,
    reference,
)

# --- reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_values_are_the_file_s(text: str) -> None:
    read = KubeletConfiguration.parse(text)
    assert read.text == text
    assert same(read.values, reference(text))


def test_an_unquoted_boolean_among_the_options_is_shown_as_it_is() -> None:
    # The kubelet refuses it: the options are a map of texts.
    text = HEAD + "cpuManagerPolicyOptions:\n  full-pcpus-only: true\n"
    read = KubeletConfiguration.parse(text)
    assert same(read.values["cpuManagerPolicyOptions"], {"full-pcpus-only": True})
    repaired = read.with_changes({("cpuManagerPolicyOptions",): {"full-pcpus-only": "true"}})
    assert repaired.text == text.replace("true", '"true"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "/x: the file is empty"),
        ("# nothing\n---\n", "/x: the file is empty"),
        ("- a\n", "/x: expected a mapping, found a list"),
        (
            "kind: KubeletConfiguration\n",
            "/x: 'apiVersion' is missing, expected 'apiVersion: kubelet.config.k8s.io/v1beta1'",
        ),
        ("apiVersion: kubelet.config.k8s.io/v1beta1\n", "/x: 'kind' is missing, expected 'kind: KubeletConfiguration'"),
        (
            "apiVersion: v1\nkind: KubeletConfiguration\n",
            "/x: expected 'apiVersion: kubelet.config.k8s.io/v1beta1', found 'v1'",
        ),
        (HEAD.replace("KubeletC", "C"), "/x: expected 'kind: KubeletConfiguration', found 'Configuration'"),
        (HEAD + "\tmaxPods: 1", "/x: line 3, column 1: found a tab; use spaces"),
        (HEAD + "maxPods: *a", "/x: line 3, column 10: the alias .a has no anchor"),
        ('{"a": %s}' % ("9" * 5000), "/x: "),
        ('{"kind": "KubeletConfiguration",\n "a": }', "/x: line 2, column 7: no JSON, which the leading '{' announces"),
        ('{"kind": 1} {}', "/x: line 1, column 13: no JSON, .*Extra data"),
        ("{kind: KubeletConfiguration}", "/x: line 1, column 2: no JSON"),
        ('{"a": {"b": 1, "b": null}}', "/x: the key 'b' is there twice, once with a null"),
        ('{"a": NaN}', "/x: NaN is no JSON"),
        ('{"a": ' + "[" * 100000, "/x: too many collections|/x: line"),
        *[(NODEADM[:end], "/x: line") for end in range(1, len(NODEADM), 37)],
    ],
)
def test_what_is_no_kubelet_configuration(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match="^(?:%s)" % message) as error:
        KubeletConfiguration.parse(text, source="/x")
    assert isinstance(error.value, NodeError)


# --- layout -----------------------------------------------------------------------------------------


def test_a_whole_number_with_a_point_stays_as_it_is_written() -> None:
    start = KubeletConfiguration.parse(HEAD + "maxPods: 110.0\n")
    assert start.with_changes({("maxPods",): 110, ("podPidsLimit",): 5.0}).text == start.text + "podPidsLimit: 5\n"


def test_the_source_s_values_are_not_touched() -> None:
    start = KubeletConfiguration.parse(KUBEADM)
    values = copy.deepcopy(start.values)
    options = {"full-pcpus-only": "true"}
    result = start.with_changes({("cpuManagerPolicyOptions",): options, ("logging", "verbosity"): 2})
    assert (start.values, start.text) == (values, KUBEADM)
    assert result.values["cpuManagerPolicyOptions"] is not options
    assert result.source == start.source


def test_new_mappings_and_lists_are_indented_as_the_file_s() -> None:
    text = HEAD + "z:\n    - u\na:\n   u: 1\n"
    result = changed(text, {("m", "q"): {"o": ["v"]}})
    assert result == text + "m:\n   q:\n      o:\n          - v\n"


def test_a_first_key_behind_a_byte_order_mark() -> None:
    text = "\ufeff" + HEAD
    assert changed(text, {("address",): "0.0.0.0"}) == "\ufeffaddress: 0.0.0.0\n" + HEAD
    assert changed("\ufeffaddress: 0.0.0.0\n" + HEAD, {("address",): REMOVE}) == text


def test_the_cpu_manager_in_kubeadm_s_file() -> None:
    result = changed(
        KUBEADM,
        {
            ("cpuManagerPolicy",): "static",
            ("cpuManagerPolicyOptions",): {"full-pcpus-only": "true"},
            ("cpuManagerReconcilePeriod",): "5s",
            ("reservedSystemCPUs",): "0,32",
            ("systemReserved", "cpu"): "2",
        },
    )
    options = 'cpuManagerPolicyOptions:\n  full-pcpus-only: "true"\n'
    expected = (
        KUBEADM.replace(
            "cpuManagerReconcilePeriod: 0s\n",
            "cpuManagerPolicy: static\n" + options + "cpuManagerReconcilePeriod: 5s\n",
        )
        .replace("rotateCertificates", "reservedSystemCPUs: 0,32\nrotateCertificates")
        .replace("volumeStats", 'systemReserved:\n  cpu: "2"\nvolumeStats')
    )
    assert result == expected


def test_the_cpu_manager_in_kubespray_s_file() -> None:
    result = changed(
        KUBESPRAY,
        {("cpuManagerPolicy",): "static", ("kubeReserved", "cpu"): REMOVE, ("reservedSystemCPUs",): "0-1"},
    )
    assert result == (
        KUBESPRAY.replace("'none'", "'static'").replace('  cpu: "100m"   # measured\n', "")
        + "\nreservedSystemCPUs: 0-1"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            NODEADM,
            NODEADM.replace("70m", "1")
            .replace('    "featureGates": {},\n', '    "featureGates": {\n        "A": true\n    },\n')
            .replace("0.9\n", '0.9,\n    "cpuManagerPolicyOptions": {\n        "full-pcpus-only": "true"\n    }\n')
            .replace('        "memory.available": "100Mi",\n', ""),
        ),
        (
            AKS,
            AKS.replace("70m", "1")
            .replace('"featureGates":{}', '"featureGates":{"A":true}')
            .replace("0.9}", '0.9,"cpuManagerPolicyOptions":{"full-pcpus-only":"true"}}')
            .replace('"memory.available":"100Mi",', ""),
        ),
        (
            ONE_LINE,
            ONE_LINE.replace("70m", "1")
            .replace('"featureGates": {}', '"featureGates": {"A": true}')
            .replace("0.9}", '0.9, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}')
            .replace('"memory.available": "100Mi", ', ""),
        ),
    ],
    ids=["nodeadm", "aks", "one line"],
)
def test_json_keeps_its_layout(text: str, expected: str) -> None:
    changes: Changes = {
        ("kubeReserved", "cpu"): "1",
        ("featureGates", "A"): True,
        ("cpuManagerPolicyOptions",): {"full-pcpus-only": "true"},
        ("evictionHard", "memory.available"): REMOVE,
    }
    assert changed(text, changes) == expected
    assert changed(text.replace("\n", "\r\n"), changes) == expected.replace("\n", "\r\n")
    assert changed(text.replace("    ", "\t"), changes) == expected.replace("    ", "\t")


@pytest.mark.parametrize("value", ["12:30", "2026-01-01", "="])
def test_a_text_that_is_another_value_to_other_readers_is_quoted(value: str) -> None:
    assert changed(HEAD, {("z",): value}) == HEAD + 'z: "%s"\n' % value


def test_remove_shows_its_name() -> None:
    assert repr(REMOVE) == "REMOVE"
