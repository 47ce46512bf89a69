# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes to kubelet configurations as kubeadm, kubespray, k3s, nodeadm and AKS lay them out."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import (
    ConfigurationError,
    InputError,
    NodeError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file import editor
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.configuration import (
    KubeletConfiguration,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.values import REMOVE, same

# Sorted keys, lists at the indentation of their keys.
KUBEADM = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""

# A template's output: a document start, no order, comments, quotes of all kinds, no line break at the end.
KUBESPRAY = """\
---
# This file is written by a template; changes are lost.
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
nodeStatusUpdateFrequency: "10s"
failSwapOn: True
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: True
clusterDomain: cluster.local
protectKernelDefaults: true
cpuManagerPolicy: 'none'   # until the next maintenance
maxPods: 110

# Reservations, see the runbook
kubeReserved:
  # the kubelet and the container runtime
  cpu: "100m"   # measured
  memory: "256Mi"
  ephemeral-storage: 500Mi # disk
  # pid: "1000"
systemReserved:
  cpu: 500m
  memory: 512Mi
evictionHard: {memory.available: 100Mi, nodefs.available: "10%"}
featureGates:
  CustomCPUCFSQuotaPeriod: true
clusterDNS:
  - 169.254.25.10
  - "fd00::a"
resolvConf: "/run/systemd/resolve/resolv.conf"
shutdownGracePeriod: 60s"""

# A drop-in: little, and with null, which deletes what the files before it say.
K3S = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration

cpuManagerPolicy: static
cpuManagerPolicyOptions:
    full-pcpus-only: "true"
    strict-cpu-reservation: null
reservedSystemCPUs: "0,16"
shutdownGracePeriod:
"""

NODEADM = """\
{
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "authentication": {
        "x509": {
            "clientCAFile": "/etc/kubernetes/pki/ca.crt"
        },
        "anonymous": {
            "enabled": false
        }
    },
    "clusterDNS": [
        "172.20.0.10"
    ],
    "evictionHard": {
        "memory.available": "100Mi",
        "nodefs.available": "10%"
    },
    "kubeReserved": {
        "cpu": "70m",
        "memory": "442Mi"
    },
    "featureGates": {},
    "maxPods": 29,
    "cpuCFSQuota": true,
    "memoryThrottlingFactor": 0.9
}"""
AKS = json.dumps(json.loads(NODEADM), separators=(",", ":")) + "\n"
ONE_LINE = json.dumps(json.loads(NODEADM)) + "\n"

# YAML, but in flow style below its document start.
FLOW_YAML = """\
---
{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration,
 kubeReserved: {cpu: 100m, memory: }, clusterDNS: [10.96.0.10, "::1"],
 'maxPods': 110,}
"""

FILES = {
    "kubeadm": KUBEADM,
    "kubespray": KUBESPRAY,
    "k3s": K3S,
    "nodeadm": NODEADM,
    "aks": AKS,
    "one line": ONE_LINE,
    "flow": FLOW_YAML,
    "crlf": KUBESPRAY.replace("\n", "\r\n"),
    "json with crlf": NODEADM.replace("\n", "\r\n"),
    "json with tabs": NODEADM.replace("    ", "\t"),
    "byte order mark": "\ufeff" + KUBEADM,
}
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

Changes = dict[tuple[str, ...], Any]


def changed(text: str, changes: Changes) -> str:
    return KubeletConfiguration.parse(text).with_changes(changes).text


def reference(text: str) -> Any:
    """The values as other readers see them. JSON has tabs and numbers such as 1e+20, which PyYAML does not know."""
    return json.loads(text) if text.startswith("{") else pyyaml.safe_load(text)


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


# --- single changes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        # A scalar keeps its place, its comment and its quotes.
        ("a: 1\nb: u # why\n", {("b",): "v"}, "a: 1\nb: v # why\n"),
        ("b: 'u' # why\n", {("b",): "it's"}, "b: 'it''s' # why\n"),
        ('b: "u" # why\n', {("b",): "v"}, 'b: "v" # why\n'),
        ("b: u # why\n", {("b",): "true"}, 'b: "true" # why\n'),
        ("b: u\n", {("b",): "0"}, 'b: "0"\n'),
        ("b: u\n", {("b",): "0-3,8"}, "b: 0-3,8\n"),
        ("b: u\n", {("b",): "y"}, 'b: "y"\n'),
        ("b: u\n", {("b",): ""}, 'b: ""\n'),
        ("b: u\n", {("b",): "two\nlines: \x7f"}, 'b: "two\\nlines: \\u007f"\n'),
        ("b: 'u'\n", {("b",): "two\nlines"}, 'b: "two\\nlines"\n'),
        ("b: u\n", {("b",): 'a "quote" # no comment'}, 'b: "a \\"quote\\" # no comment"\n'),
        ("b: 'u' # why\n", {("b",): 5}, "b: 5 # why\n"),
        ("b: 5 # why\n", {("b",): True}, "b: true # why\n"),
        ("b: 5 # why\n", {("b",): None}, "b: null # why\n"),
        ("b: 5\n", {("b",): 1e20}, "b: 1.0e+20\n"),
        ("b: 5\n", {("b",): 0.5}, "b: 0.5\n"),
        ("b: # why\n", {("b",): "u"}, "b: u # why\n"),
        ("b:\n  u # why\n", {("b",): "v"}, "b:\n  v # why\n"),
        ("b: u\n  v # why\nc: 1\n", {("b",): "w"}, "b: w # why\nc: 1\n"),
        ("b: |\n  u\n\nc: 1\n", {("b",): "w"}, "b: w\n\nc: 1\n"),
        # What is so already stays as it is written.
        ("b: 'u'\nc: {d:   1}\n", {("b",): "u", ("c",): {"d": 1}, ("e",): REMOVE, ("c", "e"): REMOVE}, None),
        ("b: {}\nc: null\n", {("b", "u"): REMOVE, ("c", "u"): REMOVE, ("d", "u"): REMOVE, ("c",): None}, None),
        # 1, true and "1" are three values; 1.0 is 1 in JSON.
        ("b: 1\n", {("b",): True}, "b: true\n"),
        ("b: 1\n", {("b",): 1.0}, None),
        ("b: 2\n", {("b",): 1.0}, "b: 1\n"),
        ("b: 1\n", {("b",): "1"}, 'b: "1"\n'),
        # New keys: by the alphabet in a file whose keys are sorted, else at the end.
        ("m: 1\n", {("l",): 1}, "l: 1\nm: 1\n"),
        ("m: 1 # why\n\n# about w\nw: 1\n", {("q",): 1}, "m: 1 # why\nq: 1\n\n# about w\nw: 1\n"),
        ("w: 1\nm: 1\n# end\n", {("q",): 1}, "w: 1\nm: 1\nq: 1\n# end\n"),
        ("m:\n  u: 1\n  # v: 2\nw: 1\n", {("q",): 1}, "m:\n  u: 1\n  # v: 2\nq: 1\nw: 1\n"),
        ("m:\n- u\nw: 1\n", {("q",): 1}, "m:\n- u\nq: 1\nw: 1\n"),
        ("m: |+\n  u\n\nw: 1\n", {("q",): 1}, "m: |+\n  u\n\nq: 1\nw: 1\n"),
        ("m: 1", {("q",): 1}, "m: 1\nq: 1"),
        ("m: 1\r\n", {("q",): {"o": 1}}, "m: 1\r\nq:\r\n  o: 1\r\n"),
        ("m: 1\n...\n", {("q",): 1}, "m: 1\nq: 1\n...\n"),
        ("m: 1\n", {("q o", "true"): "u"}, 'm: 1\nq o:\n  "true": u\n'),
        # Second level.
        ("m:\n    u: 1\n", {("m", "v"): 2}, "m:\n    u: 1\n    v: 2\n"),
        ("m:\n  u: 1 # one\n  w: 1\n", {("m", "v"): 2}, "m:\n  u: 1 # one\n  v: 2\n  w: 1\n"),
        ("m:\n  # first\n  u: 1\n", {("m", "a"): 2}, "m:\n  # first\n  a: 2\n  u: 1\n"),
        ("m: {u: 1, w: 2} # why\n", {("m", "v"): "3"}, 'm: {u: 1, v: "3", w: 2} # why\n'),
        ("m: {u: 1}\n", {("m", "a"): "b, c"}, 'm: {a: "b, c", u: 1}\n'),
        ("m: {} # why\n", {("m", "u"): {"v": [1, "a"]}}, "m: {u: {v: [1, a]}} # why\n"),
        ("m: # why\n", {("m", "u"): 1}, "m: # why\n  u: 1\n"),
        ("m: null # why\n", {("m", "u"): 1}, "m: # why\n  u: 1\n"),
        ("m: {\n  u: 1,\n  w: 2\n}\n", {("m", "v"): 3}, "m: {\n  u: 1,\n  v: 3,\n  w: 2\n}\n"),
        ("m: {u: , v: }\n", {("m", "w"): 1, ("m", "u"): 2}, "m: {u: 2 , v: , w: 1 }\n"),
        ("m: {u: 1,}\n", {("m", "v"): 2}, "m: {u: 1, v: 2,}\n"),
        ("m:\n  u:\n    v: 1\n", {("m", "u", "w"): 1}, "m:\n  u:\n    v: 1\n    w: 1\n"),
        # Removals take the empty parent along, and the comments that are indented below the key.
        ("a: 1\nb: 2 # why\nc: 3\n", {("b",): REMOVE}, "a: 1\nc: 3\n"),
        ("a: 1\nb:\n  # why\n  u:\n  - 1\n  # - 2\n# about c\nc: 3\n", {("b",): REMOVE}, "a: 1\n# about c\nc: 3\n"),
        ("a: 1\nb:\n  u: 1\nc: 3\n", {("b", "u"): REMOVE}, "a: 1\nc: 3\n"),
        ("b:\n  u: {v: 1}\nc: 3\n", {("b", "u", "v"): REMOVE}, "c: 3\n"),
        ("b:\n  u: 1\n  v: 2\n", {("b", "u"): REMOVE}, "b:\n  v: 2\n"),
        ("b: {u: 1, v: 2, w: 3} # why\n", {("b", "u"): REMOVE}, "b: {v: 2, w: 3} # why\n"),
        ("b: {u: 1, v: 2, w: 3} # why\n", {("b", "w"): REMOVE}, "b: {u: 1, v: 2} # why\n"),
        ("b: {u: , v: 2}\n", {("b", "v"): REMOVE}, "b: {u: }\n"),
        ("a: 1\nb: 2", {("b",): REMOVE}, "a: 1\n"),
        # A whole mapping: the lines of members that stay are kept.
        (
            "b:\n  u: 'true' # why\n  v: 1\n",
            {("b",): {"w": "false", "u": "true"}},
            "b:\n  u: 'true' # why\n  w: \"false\"\n",
        ),
        ("b:\n  u: 1\n", {("b",): {"v": 2}}, "b:\n  v: 2\n"),
        ("b: {u: 1}\n", {("b",): {"v": 2}}, "b: {v: 2}\n"),
        ("b: # why\n  u: 1\nc: 1\n", {("b",): {}}, "b: {} # why\nc: 1\n"),
        ("b:\n  u: 1\n", {("b", "u"): REMOVE, ("b", "v"): 1}, "b:\n  v: 1\n"),
        ("b:\n  u: 1\n", {("b",): {"w": 1}, ("b", "v"): 1}, "b:\n  v: 1\n  w: 1\n"),
        # From one kind to another.
        ("b: # why\n  u: 1\nc: 1\n", {("b",): 5}, "b: 5 # why\nc: 1\n"),
        ("b: # why\n- u\nc: 1\n", {("b",): 5}, "b: 5 # why\nc: 1\n"),
        ("b: 5 # why\nc: 1\n", {("b",): ["u"]}, "b: # why\n- u\nc: 1\n"),
        ("b: [u] # why\n", {("b",): 5}, "b: 5 # why\n"),
        ("b:\n  5\nc: 1\n", {("b",): ["u"]}, "b:\n- u\nc: 1\n"),
        ("b: u", {("b",): {"v": 1}}, "b:\n  v: 1"),
        # Lists.
        ("b:\n# why\n- u\n- v\nc: 1\n", {("b",): ["w"]}, "b:\n# why\n- w\nc: 1\n"),
        ("b:\n  - u\nc: 1\n", {("d",): ["v", "::1"]}, 'b:\n  - u\nc: 1\nd:\n  - v\n  - "::1"\n'),
        ("b: [u, v]\n", {("b",): ["::1", "a b", ","]}, 'b: ["::1", a b, ","]\n'),
        (
            "b: 1\n",
            {("reservedMemory",): [{"numaNode": 0, "limits": {"memory": "1Gi"}}, {}, [1, [2]]]},
            "b: 1\nreservedMemory:\n- numaNode: 0\n  limits:\n    memory: 1Gi\n- {}\n- [1, [2]]\n",
        ),
        ("b: 1\n", {("c",): ("u",)}, "b: 1\nc:\n- u\n"),
        # Tabs where they may be, and keys that stand alone.
        ("b: 5\t# why\n", {("b",): 6}, "b: 6\t# why\n"),
        ("b:\t5 \t\nc: 1\n", {("b",): "u"}, "b:\tu \t\nc: 1\n"),
        ("b:\t# why\n  u: 1\n", {("b",): 5}, "b: 5\t# why\n"),
        ("b: {u, v}\n", {("b", "u"): 1, ("b", "w"): 2}, "b: {u: 1, v, w: 2}\n"),
        ("b: {u, v, w}\n", {("b", "v"): REMOVE}, "b: {u, w}\n"),
        ("b: {u, v}\n", {("b", "v"): REMOVE}, "b: {u}\n"),
        # Beside anchors, aliases and merge keys.
        ("a: &x {u: 1}\nb: *x\nc: 1\n", {("c",): 2}, "a: &x {u: 1}\nb: *x\nc: 2\n"),
        ("a: &x {u: 1}\nb: *x # why\nc: 1\n", {("b",): 2}, "a: &x {u: 1}\nb: 2 # why\nc: 1\n"),
        ("a: &x {u: 1}\nb: *x # why\n", {("b",): ["v"]}, "a: &x {u: 1}\nb: # why\n- v\n"),
        ("a: &x {u: 1}\nb: *x\n", {("b",): REMOVE}, "a: &x {u: 1}\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n  v: 2\n", {("b", "v"): 3}, "a: &x\n  u: 1\nb:\n  <<: *x\n  v: 3\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n", {("b", "v"): 3}, "a: &x\n  u: 1\nb:\n  v: 3\n  <<: *x\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n  v: 2\n", {("b", "v"): REMOVE}, "a: &x\n  u: 1\nb:\n  <<: *x\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n  u: 2\n", {("b", "u"): 3}, "a: &x\n  u: 1\nb:\n  <<: *x\n  u: 3\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\nc: 1\n", {("b",): REMOVE}, "a: &x\n  u: 1\nc: 1\n"),
        ("b: {v: &x 1, w: [*x]}\nc: 1\n", {("b",): 5}, "b: 5\nc: 1\n"),
        # An anchor that nothing repeats goes with its value.
        ("a: &x 1 # why\n", {("a",): 2}, "a: 2 # why\n"),
        ("a: &x # why\n  u: 1\n", {("a",): 2}, "a: 2 # why\n"),
        ("a: &x\n  u: 1\n", {("a",): 2}, "a: 2\n"),
        ("a: &x\n  u: 1\n", {("a", "v"): 2}, "a: &x\n  u: 1\n  v: 2\n"),
        ("a: &x\n- u\n", {("a",): ["v"]}, "a:\n- v\n"),
        ("a: &x\nb: 1\n", {("a",): 2}, "a: 2\nb: 1\n"),
        ("a: &x {u: &y 1}\n", {("a", "u"): 2}, "a: &x {u: 2}\n"),
    ],
)
def test_a_change(before: str, changes: Changes, after: str | None) -> None:
    # In a mapping of its own behind the head, so that only the keys of the example decide on the order.
    def below_head(text: str) -> str:
        head = HEAD + "example:\n"
        indented = re.sub(r"(?m)^(?=[^\r\n.])", "  ", text)
        return (head.replace("\n", "\r\n") if "\r\n" in text else head) + indented

    after = before if after is None else after
    start = KubeletConfiguration.parse(below_head(before))
    result = start.with_changes({("example", *path): value for path, value in changes.items()})
    assert result.text == below_head(after)
    assert same(result.values, pyyaml.safe_load(result.text.replace("\t", " ")))


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


# --- refusals ----------------------------------------------------------------------------------------


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
    with pytest.raises(ConfigurationError, match=r"/x: clusterDNS is no mapping, found \['10.96.0.10'\]"):
        KubeletConfiguration.parse(KUBEADM, source="/x").with_changes({("clusterDNS", "cpu"): "1"})
    assert changed(KUBEADM, {("clusterDNS", "cpu"): REMOVE, ("cgroupDriver", "x", "y"): REMOVE}) == KUBEADM


@pytest.mark.parametrize("damaged", [KUBEADM, KUBEADM + "\t", KUBEADM.replace("10248", "10249")])
def test_a_text_that_would_not_read_as_wanted_is_not_given(damaged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor._Editor, "edited", lambda *_arguments: damaged)
    with pytest.raises(ConfigurationError, match=r"^/x: .* cannot be changed safely; change it by hand"):
        KubeletConfiguration.parse(KUBEADM, "/x").with_changes({("cpuManagerPolicy",): "static"})


@pytest.mark.parametrize(
    ("written", "after"),
    [
        # What is rare and does no harm.
        ("? cpuManagerPolicy\n: none\n", "? cpuManagerPolicy\n: static\n"),
        ("cpuManagerPolicy: none\n---\ncpuManagerPolicy: x\n", "cpuManagerPolicy: static\n---\ncpuManagerPolicy: x\n"),
        ("maxPods: 1\nmaxPods: 2\ncpuManagerPolicy: none\n", "maxPods: 1\nmaxPods: 2\ncpuManagerPolicy: static\n"),
        ("cpuManagerPolicy: !!str none\n", "cpuManagerPolicy: static\n"),
        ("maxPods: 0x10\ncpuManagerPolicy: none\n", "maxPods: 0x10\ncpuManagerPolicy: static\n"),
        ("a: {1: y}\n...\n", "a: {1: y}\ncpuManagerPolicy: static\n...\n"),
    ],
)
def test_changes_beside_rare_yaml(written: str, after: str) -> None:
    assert changed(HEAD + written, {("cpuManagerPolicy",): "static"}) == HEAD + after


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


@pytest.mark.parametrize("value", ["12:30", "2026-01-01", "="])
def test_a_text_that_is_another_value_to_other_readers_is_quoted(value: str) -> None:
    assert changed(HEAD, {("z",): value}) == HEAD + 'z: "%s"\n' % value


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


def test_remove_shows_its_name() -> None:
    assert repr(REMOVE) == "REMOVE"


# --- laws --------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(
    ["static", "none", "true", "10s", "500m", "2", "0-3,8", "0", "", "a b", "it's", "a: b", "- a", "# a", "y", "é"]
)
SCALARS = TEXTS | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0.5, 1e20, 1.5e-9]) | st.none()
SECOND_KEYS = st.sampled_from(["cpu", "memory", "a", "full-pcpus-only", "zz", "memory.available", "true", "a b"])
MEMBERS = st.dictionaries(SECOND_KEYS, SCALARS, max_size=3)
VALUES = SCALARS | MEMBERS | st.lists(SCALARS | MEMBERS | st.lists(SCALARS, max_size=2), max_size=3)
MAPPINGS = ["kubeReserved", "systemReserved", "evictionHard", "cpuManagerPolicyOptions", "featureGates", "new"]
TOP_KEYS = st.sampled_from(
    [
        *MAPPINGS,
        "address",
        "authentication",
        "clusterDNS",
        "cpuManagerPolicy",
        "maxPods",
        "shutdownGracePeriod",
        "zz",
        "logging",
    ]
)
PATHS = st.tuples(TOP_KEYS) | st.tuples(st.sampled_from(MAPPINGS), SECOND_KEYS)
CHANGES = st.dictionaries(PATHS, VALUES | st.just(REMOVE), max_size=5)


def expected_values(values: dict[str, Any], changes: Changes) -> dict[str, Any] | None:
    """What a person expects of changes of one or two levels; None where a path leads through a scalar or list."""
    values = copy.deepcopy(values)
    for (top, *second), value in sorted(changes.items(), key=lambda change: change[0]):
        if not second and value is REMOVE:
            values.pop(top, None)
        elif not second:
            values[top] = copy.deepcopy(value)
        elif value is REMOVE:
            if isinstance(values.get(top), dict) and second[0] in values[top]:
                del values[top][second[0]]
                if not values[top]:
                    del values[top]
        elif values.get(top) is None:
            values[top] = {second[0]: copy.deepcopy(value)}
        elif isinstance(values[top], dict):
            values[top][second[0]] = copy.deepcopy(value)
        else:
            return None
    return values


def lines_of_others(text: str, changes: Changes) -> list[str]:
    """The lines that belong to none of the changed top-level keys of a block-style file."""
    lines, changing = [], False
    changed_keys = {path[0] for path in changes}
    for line in text.splitlines():
        key = re.match(r"\ufeff?([A-Za-z0-9]+):", line)
        if key:
            changing = key.group(1) in changed_keys
        elif not line.startswith((" ", "- ")):
            changing = False
        if not changing:
            lines.append(line.replace("\ufeff", ""))
    return lines


@settings(max_examples=60, deadline=None)
@given(CHANGES)
@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_changes_change_what_they_say_and_nothing_else(text: str, changes: Changes) -> None:
    start = KubeletConfiguration.parse(text)
    expected = expected_values(start.values, changes)
    if expected is None:
        with pytest.raises(ConfigurationError, match="is no mapping"):
            start.with_changes(changes)
        return
    result = start.with_changes(changes)
    assert same(result.values, expected)
    assert same(reference(result.text), expected)
    # Again is no change, and what was so already is no change.
    assert result.with_changes(changes).text == result.text
    if same(expected, start.values):
        assert result.text == text
    # Line endings are the file's.
    assert ("\r\n" in text) == ("\r\n" in result.text)
    assert len(re.findall("\r\n|\n", result.text)) == result.text.count("\r\n" if "\r\n" in text else "\n")
    if re.search("(?m)^\ufeff?apiVersion:", text):
        assert lines_of_others(result.text, changes) == lines_of_others(text, changes)


REPEATED = """\
kubeReserved: &a
  cpu: 100m
  memory: 1Gi
systemReserved: *a
evictionHard:
  <<: *a
  a: 1
cpuManagerPolicyOptions: &b {cpu: &c 2, a: *c, <<: {zz: 1}}
featureGates: &d
  a: true
maxPods: *c
clusterDNS: [*c, {<<: *b}]
"""


@settings(max_examples=150, deadline=None)
@given(CHANGES)
def test_changes_beside_anchors_change_what_they_say_or_are_refused(changes: Changes) -> None:
    start = KubeletConfiguration.parse(HEAD + REPEATED)
    expected = expected_values(start.values, changes)
    try:
        result = start.with_changes(changes)
    except ConfigurationError as error:
        assert expected is None or " cannot be changed " in error.problem  # noqa: PT017
        return
    assert same(result.values, expected)
    assert same(pyyaml.safe_load(result.text), expected)
    assert result.with_changes(changes).text == result.text


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.tuples(TOP_KEYS), VALUES, min_size=1, max_size=4))
def test_json_stays_what_the_same_writer_writes(changes: Changes) -> None:
    for layout in ({"indent": 4}, {"indent": "\t"}, {"separators": (",", ":")}, {}):
        text = json.dumps(json.loads(NODEADM), **layout)
        result = changed(text, changes)
        assert result == json.dumps(json.loads(result), ensure_ascii=False, **layout)
        others = [key for key in json.loads(text) if (key,) not in changes]
        assert [key for key in json.loads(result) if key in others] == others
