# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ansible-core sends to a node has bytecode for it."""

from __future__ import annotations

import base64
import io
import re
import zipfile
from pathlib import Path

from .conftest import ansible_playbook, play, task


def test_a_module_is_sent_with_bytecode(tmp_path: Path) -> None:
    kept = {
        "ANSIBLE_KEEP_REMOTE_FILES": "1",
        "ANSIBLE_PIPELINING": "0",
        "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
        "KEPT_BYTECODE": "",
    }
    run = ansible_playbook(tmp_path / "run", play(task("cpu_topology_info")), {"node": {}}, environment=kept)
    assert run.status == 0, run.account()
    (script,) = (tmp_path / "remote").glob("*/AnsiballZ_cpu_topology_info.py")
    archive = max(re.findall(rb"'([A-Za-z0-9+/=]+)'", script.read_bytes()), key=len)
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(archive))) as sent:
        names = sent.namelist()
    bytecode = {name for name in names if name.endswith(".pyc")}
    utils = "ansible_collections/kubenode/cpu_manager/plugins/module_utils/"
    assert {
        utils + "_base/ansible_module.pyc",
        utils + "topology/model.pyc",
        "ansible/module_utils/basic.pyc",
    } < bytecode
    assert "ansible_collections/kubenode/cpu_manager/plugins/modules/cpu_topology_info.pyc" in bytecode
    assert {name[:-1] for name in bytecode} < set(names)
