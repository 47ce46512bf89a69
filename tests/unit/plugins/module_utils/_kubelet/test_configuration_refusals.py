# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that are refused, as no file can hold them or no text would read as wanted."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import ConfigurationError, InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet import configuration as editor
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import REMOVE
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.configuration_files import (
    HEAD,
    KUBEADM,
    changed,
)

SHARED = """\
a: &x
  u: 1
  v: {w: 2}
b: *x
c:
  <<: *x
  d: 1
e: {<<: *x, f: 1}
g:
  <<: [*x, {z: 1}]
  u: 2
"""


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("a",), 1, "line 3: a cannot be changed in the value of an anchor, which line 6 repeats; write the value out"),
        (("a",), REMOVE, "line 3: a cannot be changed in the value of an anchor"),
        (("a", "u"), 2, "line 3: a.u cannot be changed in the value of an anchor, which line 6 repeats"),
        (("a", "t"), 2, "line 3: a.t cannot be changed in the value of an anchor"),
        (("a", "v", "w"), 3, "line 3: a.v.w cannot be changed in the value of an anchor"),
        (("b", "u"), 2, "line 6: b.u cannot be changed in an alias; write the mapping out in its place"),
        (("b", "t"), 2, "line 6: b.t cannot be changed in an alias"),
        (("b", "v", "w"), 3, "line 6: b.v.w cannot be changed in an alias"),
        (("c", "u"), 2, "line 8: c.u cannot be changed beside a merge key; write the keys out that '<<' gives"),
        (("c", "u"), REMOVE, "line 8: c.u cannot be changed beside a merge key"),
        (("c", "v", "w"), 3, "line 8: c.v.w cannot be changed beside a merge key"),
        (("e", "t"), 1, "line 10: e.t cannot be changed beside a merge key"),
        (("e", "f"), 2, "line 10: e.f cannot be changed beside a merge key"),
        (("g", "u"), REMOVE, "line 12: g.u cannot be changed beside a merge key"),
        (("g", "z"), 2, "line 12: g.z cannot be changed beside a merge key"),
    ],
)
def test_a_place_that_is_shared_is_not_changed(path: tuple[str, ...], value: Any, message: str) -> None:
    start = KubeletConfiguration.parse(HEAD + SHARED, source="/x")
    with pytest.raises(ConfigurationError) as error:
        start.with_changes({path: value})
    assert str(error.value).startswith("/x: " + message)
    assert error.value.to_dict()["where"] == "/x"
    assert error.value.remedy


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("cpuManagerPolicy", "static", "the path of a change is a tuple of keys"),
        ((), "static", "the path of a change is a tuple of keys"),
        (("a", 1), "static", "the path of a change is a tuple of keys"),
        (("kind",), "Kubelet", "kind is not to be changed"),
        (("apiVersion",), REMOVE, "apiVersion is not to be changed"),
        (("a",), {1: 2}, "no configuration file can hold the value {1: 2}"),
        (("a",), {"b": REMOVE}, "no configuration file can hold the value REMOVE"),
        (("a",), [object], "no configuration file can hold the value"),
        (("a",), float("inf"), "no configuration file can hold the value inf"),
        (("a",), 2**64, "no configuration file can hold the value 18446744073709551616"),
        (("a",), "\ud800", "no configuration file can hold the value"),
    ],
)
def test_changes_that_no_file_can_hold(path: Any, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        KubeletConfiguration.parse(KUBEADM).with_changes({path: value})


def test_a_path_through_something_that_is_no_mapping() -> None:
    with pytest.raises(ConfigurationError, match=r"/x: clusterDNS is not a mapping, found \['10.96.0.10'\]"):
        KubeletConfiguration.parse(KUBEADM, source="/x").with_changes({("clusterDNS", "cpu"): "1"})
    assert changed(KUBEADM, {("clusterDNS", "cpu"): REMOVE, ("cgroupDriver", "x", "y"): REMOVE}) == KUBEADM


@pytest.mark.parametrize("damaged", [KUBEADM, KUBEADM + "\t", KUBEADM.replace("10248", "10249")])
def test_a_text_that_would_not_read_as_wanted_is_not_given(damaged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor._Editor, "edited", lambda *_arguments: damaged)
    with pytest.raises(ConfigurationError, match=r"^/x: .* cannot be changed safely; change it by hand"):
        KubeletConfiguration.parse(KUBEADM, "/x").with_changes({("cpuManagerPolicy",): "static"})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("cpuManagerPolicy: none\ncpuManagerPolicy: none\n", "/x: line 4: cpuManagerPolicy cannot be changed where"),
        ("? cpuManagerPolicy\n", "cannot be changed safely; change it by hand"),
        ("cpuManagerPolicy: none\n<<: {cpuManagerPolicy: none}\n", "cpuManagerPolicy cannot be changed beside a merge"),
        ("cpuManagerPolicy: none\n<<: {cpuManagerPolicy: none}\n<<: {}\n", "cannot be changed safely; change it by"),
        ("cpuManagerPolicy: !!str &a none\nb: 1\n", ""),
        ("cpuManagerPolicy:\u2028a: b\n", ""),
        ("? |\n  cpuManagerPolicy\n: - x\n", ""),
    ],
)
def test_a_place_in_rare_yaml_is_changed_rightly_or_not_at_all(written: str, message: str) -> None:
    configuration = KubeletConfiguration.parse(HEAD + written, "/x")
    try:
        text = configuration.with_changes({("cpuManagerPolicy",): "static"}).text
    except ConfigurationError as error:
        assert message
        assert message in str(error)  # noqa: PT017
    else:
        assert not message
        assert KubeletConfiguration.parse(text).values == {**configuration.values, "cpuManagerPolicy": "static"}


def test_the_rest_of_several_changes_is_not_made_where_the_first_cannot_be() -> None:
    configuration = KubeletConfiguration.parse(HEAD + "cpuManagerPolicy:\u2028kubeReserved: 1\n", "/x")
    with pytest.raises(ConfigurationError, match=r"^/x: .* cannot be changed safely"):
        configuration.with_changes({("cpuManagerPolicy",): ["x"], ("zz",): 1})


def test_a_key_that_json_has_twice_is_not_changed() -> None:
    header = '"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"'
    text = '{%s, "maxPods": 1, "maxPods": 2}' % header
    with pytest.raises(ConfigurationError, match="maxPods cannot be changed where the key maxPods is there twice"):
        KubeletConfiguration.parse(text).with_changes({("maxPods",): 3})
    assert KubeletConfiguration.parse(text).with_changes({("a",): 3}).values["maxPods"] == 2
