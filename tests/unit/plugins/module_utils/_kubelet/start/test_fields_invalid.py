# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.fields import (
    FieldValues,
    at_least_zero,
    between,
    gate_is_off,
    invalid,
    one_of,
    range_findings,
)


def test_ranges() -> None:
    ranges = (at_least_zero("maxPods", "max-pods"), between("healthzPort", "healthz-port", 1, 9, allows_zero=True))
    assert list(range_findings(FieldValues({"maxPods": 1, "healthzPort": 0}, 36), ranges)) == []
    assert list(range_findings(FieldValues({"maxPods": -1, "healthzPort": 10}, 36), ranges)) == [
        invalid(
            "maxPods (--max-pods) -1 must not be a negative number",
            "the number is out of range",
            "write 0 or more",
            "maxPods",
        ),
        invalid(
            "healthzPort (--healthz-port) 10 must be between 1 and 9, inclusive",
            "the number is out of range",
            "write 1 to 9",
            "healthzPort",
        ),
    ]


def test_a_gate() -> None:
    finding = gate_is_off("it needs G", "G", "field")
    assert (finding.text, finding.cause) == ("invalid configuration: it needs G", "the gate G is off")
    assert finding.remedy == "set featureGates.G: true, or remove field"


def test_options() -> None:
    assert one_of(["a", "b"]) == '"a" or "b"'
    assert one_of(["a", "b", "c"]) == '"a", "b" or "c"'
