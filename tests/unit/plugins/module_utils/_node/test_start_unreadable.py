# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report on a start says of configurations that no kubelet reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import Prediction
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.started import CONFIG, findings_of, node

LOAD = (
    "failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: failed to load Kubelet config file"
    " /var/lib/kubelet/config.yaml, error "
)
NO_OBJECT = (
    "failed to decode: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type"
    ' struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", 'kubelet config file "/var/lib/kubelet/config.yaml" was empty'),
        ("# nothing\n", "failed to decode: Object 'Kind' is missing in '# nothing\n'"),
        ("cpuManagerPolicy: static\n", "failed to decode: Object 'Kind' is missing in 'cpuManagerPolicy: static\n'"),
        (
            "kind: KubeletConfiguration\n",
            "failed to decode: Object 'apiVersion' is missing in 'kind: KubeletConfiguration\n'",
        ),
        ("- a\n", NO_OBJECT),
        (
            HEADER.replace("v1beta1", "v1"),
            (
                'failed to decode: no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"'
                ' in scheme "pkg/kubelet/apis/config/scheme/scheme.go:33"'
            ),
        ),
        ("apiVersion: [v1\n", "failed to decode: yaml: line 1: did not find expected ',' or ']'"),
        (
            HEADER + "  cpuManagerPolicy: static\n",
            "failed to decode: yaml: line 3: mapping values are not allowed in this context",
        ),
        (HEADER + "evictionHard:\n    a: b\n  c: d\n", "failed to decode: yaml: line 4: did not find expected key"),
        (
            '{"kind": "Kubelet',
            "failed to decode: couldn't get version/kind; json parse error: unexpected end of JSON input",
        ),
    ],
)
def test_a_file_that_cannot_be_decoded(root: Path, content: str, text: str) -> None:
    write(root, CONFIG, content)
    (finding,) = findings_of(root, {})
    assert (finding.text, finding.context) == (text, LOAD)
    assert finding.fatal
    assert finding.cause
    assert finding.remedy
    assert finding.where == "/" + CONFIG


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (HEADER + "a: !!timestamp 2026-01-01\n", "line 3, column 4: found the tag of a date; remove it"),
        (
            HEADER + "a: {1: b, '1': c}\n",
            "line 3, column 4: the key '1' is there twice, as a text and as none; remove one of the two",
        ),
    ],
)
def test_what_the_kubelet_may_well_read_is_not_judged(root: Path, content: str, reason: str) -> None:
    write(root, CONFIG, content)
    assert predict_start(node(root)) == Prediction([], [Unknown(reason, "/" + CONFIG)])


def test_without_a_configuration(root: Path) -> None:
    (root / CONFIG).unlink()
    for wanted in ({}, {"cpu_manager_policy": "static"}):
        with pytest.raises(NodeError, match="no kubelet runs here"):
            findings_of(root, wanted)
