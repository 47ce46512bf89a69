# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's validation of the fields about images: their removal, and how they are pulled.

Source: pkg/kubelet/apis/config/validation (validation.go), Kubernetes 1.33 to 1.36; pkg/kubelet/images/pullmanager.
"""

from __future__ import annotations

from typing import Any, Iterator

from ....golang import quote
from ...gates.enabled import Gates
from ..finding import Finding
from .amount import duration_text
from .field_values import FieldValues, text_in
from .invalid import between, gate_is_off, invalid, one_of, range_findings

# --- removal -------------------------------------------------------------------------------------------------

_IMAGE_THRESHOLDS = (
    between("imageGCHighThresholdPercent", "image-gc-high-threshold", 0, 100),
    between("imageGCLowThresholdPercent", "image-gc-low-threshold", 0, 100),
)
_MAXIMUM_AGE, _MINIMUM_AGE = "imageMaximumGCAge", "imageMinimumGCAge"
_MINIMUM_AGE_CHECKED_SINCE = 36


def image_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """From imageGCHighThresholdPercent to imageMaximumGCAge."""
    yield from range_findings(fields, _IMAGE_THRESHOLDS)
    high, low = (fields.number(threshold.field) for threshold in _IMAGE_THRESHOLDS)
    if low >= high:
        yield invalid(
            "imageGCLowThresholdPercent (--image-gc-low-threshold) %d must be less than"
            " imageGCHighThresholdPercent (--image-gc-high-threshold) %d" % (low, high),
            "images are removed from the high threshold down to the low one; the defaults are 85 and 80",
            "lower the one, or raise the other",
            "imageGCLowThresholdPercent",
        )
    longest, shortest = fields.number(_MAXIMUM_AGE), fields.number(_MINIMUM_AGE)
    if longest and not gates.enabled("ImageMaximumGCAge"):
        text = "ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge"
        yield gate_is_off(text, "ImageMaximumGCAge", _MAXIMUM_AGE)
    if shortest < 0 and fields.minor >= _MINIMUM_AGE_CHECKED_SINCE:
        yield _negative_age(_MINIMUM_AGE, shortest)
    if longest < 0:
        yield _negative_age(_MAXIMUM_AGE, longest)
    if 0 < longest <= shortest:
        yield invalid(
            "imageMaximumGCAge %s must be greater than imageMinimumGCAge %s"
            % (duration_text(longest), duration_text(shortest)),
            "an image would be too old before it may be removed; imageMinimumGCAge is 2m by default",
            "raise imageMaximumGCAge, or lower imageMinimumGCAge",
            _MAXIMUM_AGE,
        )


def _negative_age(where: str, age: int) -> Finding:
    text = "%s %s must not be negative" % (where, duration_text(age))
    return invalid(text, "an age is not negative", "write a duration such as 24h", where)


# --- pulling -------------------------------------------------------------------------------------------------

_PULLS = "maxParallelImagePulls"


def parallel_findings(fields: FieldValues) -> Iterator[Finding]:
    """maxParallelImagePulls."""
    pulls = fields.number(_PULLS, 1)
    if pulls < 1:
        text = "maxParallelImagePulls %d must be a positive number" % pulls
        yield invalid(text, "no image could be pulled", "write 1 or more, or remove it for no limit", _PULLS)
    elif pulls > 1 and fields.is_true("serializeImagePulls"):
        yield invalid(
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is"
            " set to false",
            "images are pulled one after the other",
            "set serializeImagePulls: false, or remove maxParallelImagePulls",
            _PULLS,
        )


_POLICY, _ALLOWLIST = "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
_ALLOWLIST_POLICY = "NeverVerifyAllowlistedImages"
_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", _ALLOWLIST_POLICY, "AlwaysVerify")
_PULL_GATE = "KubeletEnsureSecretPulledImages"


def pull_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Whether images that are there already need the pod's own pull secret."""
    # The default depends on the gate.
    policy, allowlist = text_in(fields.given.get(_POLICY)), fields.items(_ALLOWLIST)
    if gates.enabled(_PULL_GATE):
        yield from _policy_findings(policy or _POLICIES[1], allowlist)
        return
    for where, is_set in ((_POLICY, bool(policy)), (_ALLOWLIST, bool(allowlist))):
        if is_set:
            text = "`%s` must not be set if %s feature gate is not enabled" % (where, _PULL_GATE)
            yield gate_is_off(text, _PULL_GATE, where)


def _policy_findings(policy: str, allowlist: list[Any]) -> Iterator[Finding]:
    if policy not in _POLICIES:
        text = "option %s specified for %s. Valid options are %s" % (quote(policy), _POLICY, one_of(_POLICIES))
        yield invalid(text, "there is no such policy", "write one of %s" % ", ".join(_POLICIES), _POLICY)
    if not allowlist:
        return
    if policy != _ALLOWLIST_POLICY:
        # The kubelet's spelling.
        text = "can't set `%s` if `imagePullCredentialsVertificationPolicy` is not %s"
        yield invalid(
            text % (_ALLOWLIST, quote(_ALLOWLIST_POLICY)),
            "the list is of use for this policy only",
            "set %s: %s, or remove the list" % (_POLICY, _ALLOWLIST_POLICY),
            _ALLOWLIST,
        )
        return
    from .field_syntax import image_pattern_fault

    fault = next(filter(None, (image_pattern_fault(text_in(pattern)) for pattern in allowlist)), "")
    if fault:
        text = "invalid image pattern in `%s`: %s" % (_ALLOWLIST, fault)
        yield invalid(text, "it names no image", "write registry/image or registry/*, without a tag", _ALLOWLIST)
