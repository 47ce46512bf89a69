# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_host/services.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.services import (
    missing_files,
    read_service,
    unit_command,
)

UNIT = "/usr/lib/systemd/system/kubelet.service"
ETC = "/etc/systemd/system/kubelet.service"


def node(root: Path, files: dict[str, str]) -> Tree:
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Tree(str(root))


# As kubeadm's packages have it.
KUBEADM = {
    UNIT: "[Unit]\nDescription=kubelet\n\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n",
    UNIT + ".d/10-kubeadm.conf": (
        "# Note: with kubeadm\n[Service]\n"
        'Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/a --kubeconfig=/b"\n'
        'Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"\n'
        "EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\n"
        "EnvironmentFile=-/etc/default/kubelet\n"
        "ExecStart=\n"
        "ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS"
        " $KUBELET_EXTRA_ARGS\n"
    ),
    "/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n',
}
COMMAND = ["/usr/bin/kubelet", "--bootstrap-kubeconfig=/a", "--kubeconfig=/b", "--config=/var/lib/kubelet/config.yaml"]


def test_kubeadm(tmp_path: Path) -> None:
    assert unit_command(node(tmp_path, KUBEADM), "kubelet") == [*COMMAND, "--node-ip=10.0.0.1"]


@pytest.mark.parametrize(
    "files",
    [
        {"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--v=2 --reserved-cpus='0-1'\n"},
        {ETC + ".d/20.conf": "[Service]\nEnvironment='KUBELET_EXTRA_ARGS=--v=2 --reserved-cpus=0-1'\n"},
        # A file counts before a variable, wherever they stand.
        {
            "/etc/default/kubelet": 'KUBELET_EXTRA_ARGS="--v=2 --reserved-cpus=0-1"\n',
            ETC + ".d/20.conf": '[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--v=9"\n',
        },
    ],
)
def test_arguments_of_the_operator(tmp_path: Path, files: dict[str, str]) -> None:
    words = unit_command(node(tmp_path, {**KUBEADM, **files}), "kubelet")
    assert words == [*COMMAND, "--node-ip=10.0.0.1", "--v=2", "--reserved-cpus=0-1"]


def test_k3s(tmp_path: Path) -> None:
    """As its installer writes it."""
    text = (
        "[Service]\nType=notify\nEnvironmentFile=-/etc/default/%N\n"
        "ExecStartPre=/bin/sh -xc '! systemctl is-enabled --quiet nm-cloud-setup.service'\n"
        "ExecStart=/usr/local/bin/k3s \\\n    server \\\n# why\n\t'--kubelet-arg=reserved-cpus=0-1' \\\n"
        "\t'--node-label=a b' \\\n\n"
    )
    words = unit_command(node(tmp_path, {"/etc/systemd/system/k3s.service": text}), "k3s")
    assert words == ["/usr/local/bin/k3s", "server", "--kubelet-arg=reserved-cpus=0-1", "--node-label=a b"]


XYZ = ["/a", "xb cd", "e\tf", "AA\u00e9\u00e9", 'g"h', "i j"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ExecStart=-/usr/bin/kubelet --a", ["/usr/bin/kubelet", "--a"]),
        ("ExecStart=/a\nExecStart=", []),
        ("Environment=A=1 B=2\nExecStart=/a --a=${A} --b=x${B}y $A ${C} $C $$A $${A}", "/a --a=1 --b=x2y 1 $A ${A}"),
        ("Environment=A=1\nEnvironment=\nExecStart=/a $A", ["/a"]),
        ("EnvironmentFile=/env\nEnvironmentFile=\nExecStart=/a $E", ["/a"]),
        ("EnvironmentFile=/env\nExecStart=/a $E", ["/a", "1"]),
        ("Environment=A=1 B=2\nUnsetEnvironment=A=1 B=1\nExecStart=/a ${A} ${B}", ["/a", "", "2"]),
        ("Environment=A=1\nUnsetEnvironment=A\nUnsetEnvironment=\nExecStart=/a ${A}", ["/a", "1"]),
        # Quotes within words, what C makes of a backslash, and what means nothing.
        (r"""ExecStart=/a x"b c"d 'e\tf' \x41\101\u00e9\xc3\xa9 "g\"h" i\sj""", XYZ),
        (r"ExecStart=/a \q --b=\x4 \400 \ud800 \0", ["/a", r"\q", r"--b=\x4", r"\400", r"\ud800", r"\0"]),
        ('ExecStart=/a "b', []),
        ("ExecStart=/a b\\ \nEnvironment=A=1", ["/a", "b\\"]),
        # Specifiers, of which the unknown stay.
        ("ExecStart=/a 100%% %N %n %p %S/x %t %i", "/a 100% kubelet kubelet.service kubelet /var/lib/x /run %i"),
        ("Environment='A=%%x'\nEnvironmentFile=/%Nenv\nExecStart=/a $A $K", "/a %x 2"),
        # Of a line of variables all behind a word that is none counts no more.
        ("Environment=A=1 B=\\q C=3\nEnvironment=D=4 'E=5\nExecStart=/a $A $B $C $D $E", "/a 1 4"),
        ('Environment=1A=1 export B=2 =3 A=x"y z"\nExecStart=/a ${A} $B ${1A}', ["/a", "xy z", "2", ""]),
        # Variables: split only as a word of their own; no name is a name; without them behind a colon.
        ("Environment='A=b \"c d\"'\nExecStart=/a $A --x=${A} $A-b x$A", ["/a", "b", "c d", '--x=b "c d"', "x$A"]),
        ("Environment=A=1\nExecStart=:/a $A ${A} $$", "/a $A ${A} $$"),
        ("ExecStart=@/a name --b", ["/a", "--b"]),
        # Lines that go on, also those with two backslashes at the end.
        ("ExecStart=/a b\\\n  c\\\n# d\\\n\n --e", "/a b c"),
        ("ExecStart=/a b\\\\\nEnvironment=A=1", ["/a", "b\\"]),
        ("ExecStart=/a\r\nEnvironment=A=1\r\n", ["/a"]),
        ("; ExecStart=/b\n[Install]\nExecStart=/c", []),
    ],
)
def test_unit(tmp_path: Path, text: str, words: list[str] | str) -> None:
    tree = node(tmp_path, {ETC: "[Service]\n" + text, "/env": "E=1\n", "/kubeletenv": "K=2\n"})
    found = unit_command(tree, "kubelet")
    if isinstance(words, str):
        # An empty variable in a word leaves an empty word.
        assert [word for word in found if word] == words.split()
    else:
        assert found == words


def test_the_first_of_a_name_counts(tmp_path: Path) -> None:
    drop_in = "[Service]\nExecStart=\nExecStart=/%s\n"
    files = {
        UNIT: "[Service]\nExecStart=/a\n",
        UNIT + ".d/10.conf": drop_in % "b",
        "/run/systemd/system/kubelet.service.d/20.conf": drop_in % "c",
        UNIT + ".d/20.conf": drop_in % "d",
        UNIT + ".d/30.txt": drop_in % "e",
    }
    assert unit_command(node(tmp_path, files), "kubelet") == ["/c"]
    assert unit_command(node(tmp_path, {ETC: "[Service]\nExecStart=/f\n", ETC + ".d/99.conf": ""}), "kubelet") == ["/c"]


def test_what_says_nothing(tmp_path: Path) -> None:
    tree = node(tmp_path, {ETC + ".d/20.conf": "[Service]\nExecStart=/a\n"})
    assert unit_command(tree, "kubelet") == []
    (tmp_path / ETC.lstrip("/")).symlink_to("/dev/null")
    assert unit_command(tree, "kubelet") == []


@pytest.mark.parametrize("word", ["${V}", "$V"])
def test_a_command_line_is_no_longer_than_a_kernel_takes(tmp_path: Path, word: str) -> None:
    """Variables in place make few signs many: it is found out before these are made."""
    value = "v" * 1000

    def command(times: int) -> list[str]:
        text = "[Service]\nEnvironment=V=%s\nExecStart=/k %s\n" % (value, " ".join([word] * times))
        return unit_command(node(tmp_path, {ETC: text}), "kubelet")

    assert command(900) == ["/k", *([value] * 900)]
    assert command(2000) == []


def test_what_is_taken_back(tmp_path: Path) -> None:
    """An empty value takes back what came before, and nothing that comes after."""
    before = "Environment=A=1\nEnvironmentFile=/a\nUnsetEnvironment=B\n"
    empty = "Environment=\nEnvironmentFile=\nUnsetEnvironment=\n"
    after = "Environment=B=2 C=3\nEnvironmentFile=-/b\nUnsetEnvironment=C\n"
    tree = node(tmp_path, {ETC: "[Service]\n" + before + empty + after})
    service = read_service(tree, "kubelet")
    assert {name: variable.value for name, variable in service.variables.items()} == {"B": "2"}
    assert service.files == ["/b"]
    assert missing_files(tree, "kubelet") == []
