# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Collections with a kubernetes.core whose modules are those of a test, so that it sees each call of the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Mapping

from .conftest import CHECKOUT


def write_collections(collections: Path, modules: Mapping[str, str]) -> None:
    """Make a directory with this collection and a kubernetes.core. modules: their texts by their names."""
    root = collections / "ansible_collections"
    core = root / "kubernetes/core"
    (core / "plugins/modules").mkdir(parents=True)
    (core / "meta").mkdir()
    (root / "kubenode").mkdir()
    (root / "kubenode/cpu_manager").symlink_to(CHECKOUT)
    for name, text in modules.items():
        (core / "plugins/modules" / (name + ".py")).write_text(text, encoding="utf-8")
    manifest = {"collection_info": {"namespace": "kubernetes", "name": "core", "version": "6.0.0"}}
    (core / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    runtime = {"requires_ansible": ">=2.15", "action_groups": {"k8s": list(modules)}}
    (core / "meta/runtime.yml").write_text(json.dumps(runtime), encoding="utf-8")
