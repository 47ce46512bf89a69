# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ansible-core sends to a node has all that it imports, and bytecode for it, and runs."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import IS_FULL

from .conftest import CHECKOUT, HERE, ansible_playbook, play, task

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
        name: {
            "ansible_python_interpreter": interpreter,
            "ansible_remote_tmp": str(tmp_path / name),
            "kubelet_node_root": "/",
        }
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


def test_what_is_found_fast_is_what_ansible_finds() -> None:
    modules = [
        path for path in sorted((CHECKOUT / "plugins/modules").glob("[a-z]*.py")) if b"from .." in path.read_bytes()
    ]
    assert len(modules) > 20
    command = [sys.executable, str(HERE / "packed_files.py"), *map(str, modules if IS_FULL else modules[::8])]
    collections = {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **collections})
    assert json.loads(told.stdout) == {}
