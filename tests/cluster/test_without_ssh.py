# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pod that saves a node without ssh: an API server takes it, and what it prints is what node_save saves.

The runtime of this cluster runs no pods. So the program is run as the pod has it: with its mounts and its capabilities,
in the mounts of a real kubelet.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import SAID
from ansible_collections.kubenode.cpu_manager.tests.playbooks.test_without_ssh import PROGRAM, archive_in, build
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .control_plane import ControlPlane
from .kubelet_node import STARTED, KubeletNode
from .test_real_kubelet import STATIC, pid_of

CHECKOUT = Path(__file__).parents[2]
MANIFEST = PROGRAM.parent / "daemonset.yml"
IMAGE = "registry.example.org:5000/python@sha256:" + "0123456789abcdef" * 4
# Where systemd would have the processes of its services, by version.
PLACES = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
# What a kernel says anew each time.
ANEW = re.compile("/proc/(loadavg|meminfo|mounts|[0-9]+/stat)")
MODULE = """\
import json, sys
from ansible.module_utils.testing import patch_module_args
sys.path.insert(0, sys.argv[1])
import collection_path; collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.modules import node_save
with patch_module_args({"dest": sys.argv[2]}):
    node_save.main()
"""
POD = """\
root=$1; shift
mount --rbind -o ro / "$root"
mount -o remount,bind,ro "$root"
for directory in %s; do
    mount --rbind -o ro "$directory" "$root$directory"
    mount -o remount,bind,ro "$root$directory"
done
exec setpriv --bounding-set=-all,%s --no-new-privs "$@"
"""


@pytest.fixture
def pod(control_plane: ControlPlane, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Yield the pod as the API server has it."""
    manifest = tmp_path / "pods.yml"
    manifest.write_bytes(
        subprocess.run([sys.executable, str(PROGRAM), "pods", IMAGE], check=True, stdout=subprocess.PIPE).stdout
    )
    control_plane.kubectl("apply", "--filename=" + str(manifest))
    said = control_plane.kubectl("get", "daemonset/kubenode-save", "--namespace=kubenode-save", "--output=json")
    yield json.loads(said)["spec"]["template"]["spec"]
    control_plane.kubectl("delete", "--filename=" + str(manifest))


@contextmanager
def as_service(pid: int) -> Iterator[None]:
    """Have a process in the cgroup of a kubelet's service during the context, as systemd has it."""
    (top, *_others) = [path for path in map(Path, PLACES) if (path / "cgroup.procs").exists()]
    before = Path("/proc/%d/cgroup" % pid).read_text(encoding="ascii")
    service = top / "kubenode-test.slice/kubelet.service"
    service.mkdir(parents=True, exist_ok=True)
    (service / "cgroup.procs").write_text(str(pid), encoding="ascii")
    try:
        yield
    finally:
        name = "name=systemd" if top.name == "systemd" else ""
        (path,) = (line.split(":", 2)[2] for line in before.splitlines() if line.split(":")[1] == name)
        (top / path.lstrip("/") / "cgroup.procs").write_text(str(pid), encoding="ascii")
        service.rmdir()
        service.parent.rmdir()


def members(archive: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is in an archive, by path, and what was written down beside it."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        found = {"/" + member.name: (member.type, member.linkname, content(opened, member)) for member in opened}
    said = json.loads(found.pop(SAID)[2])
    return {path: value for path, value in found.items() if not ANEW.fullmatch(path)}, {**said, "saved": ""}


def content(opened: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = opened.extractfile(member) if member.isfile() else None
    return b"" if file is None else file.read()


@pytest.mark.needs("nsenter", "setpriv", "mount")
def test_a_pod_prints_what_node_save_saves(real_kubelet: Path, pod: dict[str, Any], tmp_path: Path) -> None:
    (container,) = pod["containers"]
    *command, root = container["command"]
    assert container["image"] == IMAGE
    assert (container["volumeMounts"][0]["mountPath"], command[:3]) == ("/program", ["python3", "-I", "-B"])
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    places = [mount["mountPath"][len(root) :] for mount in container["volumeMounts"][2:]]
    capabilities = ",".join("+" + name.lower() for name in container["securityContext"]["capabilities"]["add"])
    program, there, here = tmp_path / "node-save.pyz", tmp_path / "mounted", tmp_path / "node.tar.gz"
    build(program)
    there.mkdir()
    with KubeletNode(tmp_path / "real", "1s4c2t", STATIC, real=real_kubelet) as node:
        node.start()
        node.wait_for(STARTED)
        pid = pid_of(real_kubelet / "kubelet", "real")
        enter = ["nsenter", "--mount", "--target=%d" % pid]
        module = [sys.executable, "-c", MODULE, str(CHECKOUT / "tests"), str(here)]
        shell = ["unshare", "--mount", "sh", "-ec", POD % (" ".join(places), capabilities), "sh", str(there)]
        python = [sys.executable, *command[1:3], str(program), str(there)]
        with as_service(pid):
            subprocess.run([*enter, *module], check=True, stdout=subprocess.PIPE)
            printed = subprocess.run([*enter, *shell, *python], check=True, stdout=subprocess.PIPE).stdout
    expected, said_on_node = members(here.read_bytes())
    found, said = members(archive_in(printed))
    assert said == said_on_node
    assert (said["said"]["version"], said["node"]) == (kubernetes.version(), "real")
    assert found == expected
    assert "/var/lib/kubelet/cpu_manager_state" in found
