# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.fields import FieldValues
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.other_fields import (
    image_findings,
    parallel_findings,
    pull_findings,
)

SECOND = 10**9
POLICY, ALLOWLIST = "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
GATE = "KubeletEnsureSecretPulledImages"
LISTED = {POLICY: "NeverVerifyAllowlistedImages"}
HIGH = "imageGCHighThresholdPercent (--image-gc-high-threshold) "
LOW = "imageGCLowThresholdPercent (--image-gc-low-threshold) "


def texts(values: dict[str, Any], minor: int = 36, gates: dict[str, bool] | None = None) -> list[str]:
    fields, there = FieldValues(values, minor), Gates(gates or {}, minor)
    findings = [*image_findings(fields, there), *parallel_findings(fields), *pull_findings(fields, there)]
    assert all(finding.fatal and finding.cause and finding.remedy and finding.where in values for finding in findings)
    assert all(finding.text.startswith("invalid configuration: ") for finding in findings)
    return [finding.text[len("invalid configuration: ") :] for finding in findings]


@pytest.mark.parametrize(
    ("values", "minor", "gates"),
    [
        ({}, 33, {}),
        ({}, 36, {}),
        ({"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 0}, 36, {}),
        ({"imageMaximumGCAge": 121 * SECOND}, 36, {}),
        ({"imageMaximumGCAge": 0}, 33, {"ImageMaximumGCAge": False}),
        ({"imageMinimumGCAge": -1}, 35, {}),
        ({"maxParallelImagePulls": 1}, 36, {}),
        ({"maxParallelImagePulls": 2}, 36, {}),
        ({"maxParallelImagePulls": 2, "serializeImagePulls": False}, 36, {}),
        ({POLICY: ""}, 33, {}),
        ({POLICY: ""}, 36, {}),
        ({POLICY: "AlwaysVerify", ALLOWLIST: []}, 36, {}),
        ({**LISTED, ALLOWLIST: ["reg.io/a", "reg.io/*"]}, 36, {}),
        ({**LISTED, ALLOWLIST: ["reg.io/a"]}, 33, {GATE: True}),
    ],
)
def test_fine(values: dict[str, Any], minor: int, gates: dict[str, bool]) -> None:
    assert texts(values, minor, gates) == []


@pytest.mark.parametrize(
    ("values", "minor", "gates", "found"),
    [
        ({"imageGCHighThresholdPercent": 101}, 36, {}, [HIGH + "101 must be between 0 and 100, inclusive"]),
        ({"imageGCLowThresholdPercent": -1}, 36, {}, [LOW + "-1 must be between 0 and 100, inclusive"]),
        ({"imageGCLowThresholdPercent": 85}, 36, {}, [LOW + "85 must be less than " + HIGH + "85"]),
        (
            {"imageMaximumGCAge": 3600 * SECOND},
            33,
            {"ImageMaximumGCAge": False},
            ["ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge"],
        ),
        ({"imageMinimumGCAge": -SECOND}, 36, {}, ["imageMinimumGCAge -1s must not be negative"]),
        ({"imageMaximumGCAge": -SECOND}, 36, {}, ["imageMaximumGCAge -1s must not be negative"]),
        (
            {"imageMaximumGCAge": 120 * SECOND},
            36,
            {},
            ["imageMaximumGCAge 2m0s must be greater than imageMinimumGCAge 2m0s"],
        ),
        ({"maxParallelImagePulls": 0}, 36, {}, ["maxParallelImagePulls 0 must be a positive number"]),
        (
            {"maxParallelImagePulls": 2, "serializeImagePulls": True},
            36,
            {},
            [
                (
                    "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls"
                    " (--serialize-image-pulls) is set to false"
                )
            ],
        ),
        (
            {POLICY: "Foo"},
            36,
            {},
            [
                (
                    'option "Foo" specified for imagePullCredentialsVerificationPolicy. Valid options are'
                    ' "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"'
                )
            ],
        ),
        (
            {ALLOWLIST: ["reg.io/a"]},
            36,
            {},
            [
                (
                    "can't set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is"
                    ' not "NeverVerifyAllowlistedImages"'
                )
            ],
        ),
        (
            {**LISTED, ALLOWLIST: ["reg.io/a", "reg.io/b:c", "*"]},
            36,
            {},
            [
                (
                    "invalid image pattern in `preloadedImagesVerificationAllowlist`: neither tag nor digest is"
                    " accepted in an image reference: reg.io/b:c"
                )
            ],
        ),
        (
            {POLICY: "AlwaysVerify", ALLOWLIST: ["a"]},
            33,
            {},
            [
                "`%s` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled" % name
                for name in (POLICY, ALLOWLIST)
            ],
        ),
    ],
)
def test_refused(values: dict[str, Any], minor: int, gates: dict[str, bool], found: list[str]) -> None:
    assert texts(values, minor, gates) == found
