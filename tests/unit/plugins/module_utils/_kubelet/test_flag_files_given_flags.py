# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/flag_files.py."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import ConfigurationError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.distributions import DISTRIBUTIONS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flag_files import find_flags, find_words

UNIT = "etc/systemd/system/%s.service"
KUBEADM_FLAGS, EXTRA_FLAGS = "var/lib/kubelet/kubeadm-flags.env", "etc/default/kubelet"
ARGS, MORE_ARGS = "etc/rancher/rke2/config.yaml", "etc/rancher/rke2/config.yaml.d/90.yaml"
MICROK8S = "var/snap/microk8s/current/args/kubelet"

# Distribution, its files, what its kubelet was started with, the words that it is given.
WORDS: list[tuple[str, Mapping[str, str], str, str]] = [
    ("kubeadm", {}, "", ""),
    # A command line tells everything, and the files then nothing.
    ("kubeadm", {EXTRA_FLAGS: "KUBELET_EXTRA_ARGS=--v=4\n"}, "/usr/bin/kubelet --v=2 --x 1", "--v=2 --x 1"),
    ("kubeadm", {}, "/usr/bin/kubelet", ""),
    # Else the unit does, with the files that it names.
    (
        "kubeadm",
        {
            UNIT % "kubelet": (
                "[Service]\nEnvironment=A=--config=/x\nEnvironmentFile=-/etc/default/kubelet\n"
                "ExecStart=/usr/bin/kubelet $A $KUBELET_EXTRA_ARGS $MISSING\n"
            ),
            EXTRA_FLAGS: "KUBELET_EXTRA_ARGS='--v=4 --cpu-manager-policy=none'\nHOME=/root\n",
            KUBEADM_FLAGS: "KUBELET_KUBEADM_ARGS=--v=9\n",
        },
        "",
        "--config=/x --v=4 --cpu-manager-policy=none",
    ),
    # Else the distribution's files, in their order.
    (
        "kubeadm",
        {EXTRA_FLAGS: "KUBELET_EXTRA_ARGS=--v=4\nHOME=/root\n", KUBEADM_FLAGS: "KUBELET_KUBEADM_ARGS=--x --y=1\n"},
        "",
        "--x --y=1 --v=4",
    ),
    # A wrapper of the kubelet says nothing of what it is given.
    (
        "kubeadm",
        {UNIT % "kubelet": "[Service]\nExecStart=/bin/sh -c start\n", EXTRA_FLAGS: "KUBELET_EXTRA_ARGS=--v=4\n"},
        "",
        "--v=4",
    ),
    ("MicroK8s", {MICROK8S: "# its own\n--v=4\n--root-dir=/x\n"}, "", "--v=4 --root-dir=/x"),
    ("MicroK8s", {MICROK8S: "--v=4\n"}, "/snap/microk8s/1/kubelite --kubelet-args-file=/x", "--v=4"),
    ("RKE2", {}, "", ""),
    (
        "RKE2",
        {ARGS: "kubelet-arg: [max-pods=50]\n", MORE_ARGS: "kubelet-arg+: [v=4]\n"},
        "",
        "--max-pods=50 --v=4",
    ),
    # What the unit gives comes last.
    (
        "RKE2",
        {
            ARGS: "kubelet-arg: [max-pods=50]\n",
            UNIT % "rke2-server": "[Service]\nExecStart=/usr/bin/rke2 server --kubelet-arg=v=4 --kubelet-arg --x=1\n",
        },
        "",
        "--max-pods=50 --v=4 --x=1",
    ),
    # What else a running kubelet has it is given again; of what the files give, only what they say now.
    (
        "RKE2",
        {ARGS: "kubelet-arg: [max-pods=50, v=4]\n"},
        "kubelet --config-dir=/x --max-pods 110 --v=2 --node-labels= --read-only-port 0",
        "--config-dir=/x --node-labels= --read-only-port 0 --max-pods=50 --v=4",
    ),
    # The word behind a flag is its value, whatever it looks like.
    (
        "RKE2",
        {ARGS: "kubelet-arg: [oom-score-adj=-1, fail-swap-on]\n"},
        "kubelet --fail_swap_on --oom-score-adj -999 --v=2 -h --not-known 1 -- rest",
        "--v=2 -h --not-known 1 --oom-score-adj=-1 --fail-swap-on -- rest",
    ),
    ("k3s", {"etc/rancher/k3s/config.yaml": "kubelet-arg: v=4\n"}, "/usr/local/bin/k3s server", "--v=4"),
    (
        "k3s",
        {},
        "/usr/local/bin/k3s server --kubelet-arg=v=4 --kubelet-arg max-pods=1 -- --kubelet-arg=x",
        "--v=4 --max-pods=1",
    ),
]


@pytest.mark.parametrize(("name", "files", "line", "words"), WORDS)
def test_words(tmp_path: Path, name: str, files: Mapping[str, str], line: str, words: str) -> None:
    distribution = next(row for row in DISTRIBUTIONS if row.name == name)
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    tree, arguments = Tree(str(tmp_path)), line.split()
    assert find_words(tree, distribution, arguments) == words.split()
    # Those whose meaning is known are among them.
    flags = find_flags(tree, distribution, arguments, 7 if line else None)
    for flag in flags:
        assert {flag.name, "%s=%s" % (flag.name, flag.value)} & set(words.split())
    # A kubelet that is stopped now, and was started with the same, will be given the same again.
    stopped = find_flags(tree, distribution, arguments, None)
    assert [(flag.name, flag.value) for flag in stopped] == [(flag.name, flag.value) for flag in flags]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    distribution = next(row for row in DISTRIBUTIONS if row.name == "RKE2")
    (tmp_path / ARGS).parent.mkdir(parents=True)
    (tmp_path / ARGS).write_text("kubelet-arg: [\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="kubelet-arg cannot be read"):
        find_words(Tree(str(tmp_path)), distribution, ())
