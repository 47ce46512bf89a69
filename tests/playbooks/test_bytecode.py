# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ansible-core sends to a node has bytecode for it, and runs."""

from __future__ import annotations

import base64
import io
import re
import sys
import zipfile
from pathlib import Path

from .conftest import ansible_playbook, play, task

UTILS = "ansible_collections/kubenode/cpu_manager/plugins/module_utils/"
NEEDED = {
    UTILS + "_base/ansible_module.pyc",
    UTILS + "topology/model.pyc",
    "ansible/module_utils/basic.pyc",
    "ansible_collections/kubenode/cpu_manager/plugins/modules/cpu_topology_info.pyc",
}


def test_a_module_is_sent_with_bytecode(tmp_path: Path) -> None:
    version = "python%d.%d" % sys.version_info[:2]
    interpreters = {"any": sys.executable, "mine": str(Path(sys.executable).with_name(version))}
    hosts = {
        name: {"ansible_python_interpreter": interpreter, "ansible_remote_tmp": str(tmp_path / name)}
        for name, interpreter in interpreters.items()
    }
    kept = {"ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_PIPELINING": "0", "KEPT_BYTECODE": ""}
    run = ansible_playbook(tmp_path / "run", play(task("cpu_topology_info")), hosts, environment=kept)
    assert run.status == 0, run.account()
    sent = {}
    for name in hosts:
        (script,) = (tmp_path / name).glob("*/AnsiballZ_cpu_topology_info.py")
        archive = max(re.findall(rb"'([A-Za-z0-9+/=]+)'", script.read_bytes()), key=len)
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(archive))) as files:
            sent[name] = set(files.namelist())
        assert sent[name] > NEEDED
    sources = {name[:-1] for name in sent["mine"] if name.endswith(".pyc")}
    assert sources < sent["any"]
    assert not sources & sent["mine"]
