# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests of pods as several tests write them: containers, their resources, and the pod around them."""

from __future__ import annotations

from typing import Any

MINORS = (33, 34, 35, 36)

Resources = dict[str, Any]


def container(name: str, cpu: object = None, memory: object = None, **more: Any) -> dict[str, Any]:
    """Return a container with these limits, and requests that the API server fills in."""
    limits = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    return {"name": name, "resources": {"limits": limits}, **more}


def manifest(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", "uid": "u1"}, "spec": {"containers": list(containers), **spec}}


def resources(requests: Resources, limits: Resources) -> dict[str, Any]:
    return {"requests": requests, "limits": limits}
