# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_runtime/runtime_files.py: which files are read, and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._runtime.runtime_files import (
    Runtime,
    find_runtime,
    read_state,
)

from .runtime_files import CRI_3, DIRECTORY, IMPORTS, MAIN, NRI, ON, node


def test_files_that_import_each_other(tmp_path: Path) -> None:
    tree = node(
        tmp_path, {MAIN: 'version = 3\nimports = ["a.toml"]\n', "/etc/containerd/a.toml": 'imports = ["config.toml"]\n'}
    )
    assert read_state(tree, find_runtime(tree, None)).nri == ON


def test_too_many_files(tmp_path: Path) -> None:
    files = {"%s/%d.toml" % (DIRECTORY, number): "" for number in range(201)}
    tree = node(tmp_path, {MAIN: IMPORTS, **files})
    with pytest.raises(NodeError) as caught:
        read_state(tree, find_runtime(tree, None))
    assert "more than 200 files" in str(caught.value)


def test_places_of_the_socket_and_the_files(tmp_path: Path) -> None:
    text = "version = 3\n" + NRI + 'socket_path = "/x.sock"\n' + CRI_3 + 'cdi_spec_dirs = ["/c"]\n'
    state = read_state(node(tmp_path, {MAIN: text}), Runtime("containerd", MAIN, "containerd"))
    assert state.to_dict() == {
        "nri": True,
        "nri_source": "",
        "cdi": True,
        "cdi_source": "",
        "nri_socket": "/x.sock",
        "cdi_spec_dirs": ["/c"],
    }
