# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No secret of a node is in its archive, whatever file it is in and however it is written there."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from importlib import import_module
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.archive import unpacked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import save_node
from ansible_collections.kubenode.cpu_manager.tests.machines.secretive import JOURNALS, LOG_FILE, NODES, Secrets
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import IS_FULL

MODULES = "ansible_collections.kubenode.cpu_manager.plugins.modules."
STATIC: dict[str, object] = {"cpu_manager_policy": "static", "reservation": {"count": 1}}
ANSWERS: list[tuple[str, dict[str, object]]] = [
    ("start_check", STATIC),
    ("kubelet_config", STATIC),
    ("runtime_config", {}),
    ("runtime_config", {"state": "absent"}),
    ("rollout_journal", {"state": "read"}),
    ("checkpoint_info", STATIC),
    ("housekeeping_info", {}),
    ("dra_info", {}),
    ("node_save", {"dest": "/nowhere/x.tar.gz"}),
    ("wait_for_kubelet", {"seconds": 0, "timeout": 0, "log_file": LOG_FILE, "_ansible_check_mode": False}),
]
# With FULL=1 each module that reads a node.
ANSWERS += [
    ("allocation_plan", STATIC),
    ("cache_info", {}),
    ("cache_partition", {"shared": {"l3": {"percent": 50}}}),
    ("checkpoint", {**STATIC, "state": "present", "allow_running_kubelet": True}),
    ("cpu_topology_info", {}),
    ("drift_info", STATIC),
    ("housekeeping", {"layers": ["irq"]}),
    ("isolation_info", {"seconds": 1}),
    ("kubelet_trial", STATIC),
    ("reconcile", {}),
    ("rollout_info", STATIC),
    ("throttling_info", {"seconds": 1}),
] * IS_FULL


def members(archive: bytes) -> dict[str, bytes]:
    """Return the contents of its files, and of the copies of files in journals."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            file = opened.extractfile(member) if member.isreg() else None
            content = file.read() if file is not None else b""
            found[member.name] = content + (member.name + member.linkname).encode("utf-8")
            if "/" + member.name in JOURNALS:
                for path, saved in json.loads(content)["files"].items():
                    found["%s: %s" % (member.name, path)] = base64.b64decode(saved["content"])
    return found


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("name", NODES)
def test_no_secret_is_in_an_archive(tmp_path: Path, name: str, redact: bool) -> None:
    secrets = Secrets()
    NODES[name](tmp_path, secrets)
    archive, about = save_node(Node(Tree(str(tmp_path))), name, redact)
    found = {**members(archive), "about": json.dumps(about).encode("utf-8")}
    kept = {(path, secret) for path, content in found.items() for secret in secrets.given if secret.encode() in content}
    assert kept == set()


def test_there_are_many_secrets(tmp_path: Path) -> None:
    secrets = Secrets()
    for name, make in NODES.items():
        make(tmp_path / name, secrets)
    assert len(secrets.given) >= 100
    assert len(set(secrets.given)) == len(secrets.given)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and not file.is_symlink())
    copies = [
        base64.b64decode(saved["content"])
        for name in NODES
        for path in JOURNALS
        if (tmp_path / name / path.lstrip("/")).exists()
        for saved in json.loads((tmp_path / name / path.lstrip("/")).read_text("utf-8"))["files"].values()
    ]
    assert [secret for secret in secrets.given if secret.encode() not in written + b"".join(copies)] == []


@pytest.mark.parametrize("name", NODES)
def test_what_gives_the_kubelet_its_flags_is_kept(tmp_path: Path, name: str) -> None:
    """Each of these nodes is still one with a kubelet, of the same distribution."""
    NODES[name](tmp_path / "node", Secrets())
    node = Node(Tree(str(tmp_path / "node")))
    archive, _about = save_node(node, name)
    (tmp_path / "node.tar.gz").write_bytes(archive)
    opened = unpacked(str(tmp_path / "node.tar.gz"))
    copy = Node(Tree(opened.directory))
    assert node.installation is not None
    assert copy.installation is not None
    assert copy.installation.distribution == node.installation.distribution
    assert copy.installation.config_path == node.installation.config_path
    assert len(copy.installation.command_line) == len(node.installation.command_line)
    opened.remove()


@pytest.mark.parametrize("name", NODES)
def test_no_secret_is_in_an_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    """Of what a module returns, -vvv shows all, also the difference that it would make."""
    secrets = Secrets()
    NODES[name](tmp_path, secrets)
    for module, parameters in ANSWERS:
        arguments = {"root": str(tmp_path), "_ansible_check_mode": True, **parameters}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            import_module(MODULES + module).main()
        text = capsys.readouterr().out
        assert [secret for secret in secrets.given if secret in text] == [], module


@pytest.mark.parametrize("name", ["k0s", "microk8s", "crio"])
def test_why_a_kubelet_fails_is_told_without_secrets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    secrets = Secrets()
    NODES[name](tmp_path, secrets)
    arguments = {"root": str(tmp_path), "seconds": 0, "timeout": 0, "log_file": LOG_FILE}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        import_module(MODULES + "wait_for_kubelet").main()
    message = json.loads(capsys.readouterr().out)["msg"]
    assert [secret for secret in secrets.given if secret in message] == []
    for reason in (
        "dial tcp: refused",
        'for \\"--x\\" flag: why',
        "yaml: unknown anchor",
        "--vendor-key=redacted: why",
    ):
        assert reason in message
    assert len(secrets.given) > message.count("redacted") > 10
