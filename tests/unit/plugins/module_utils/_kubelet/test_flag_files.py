# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/flag_files.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flag_files import (
    environment_words,
    kubelet_arg_file,
    kubelet_args,
    line_words,
    with_lines,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ('KUBELET_KUBEADM_ARGS="--a=1 --b 2"\n', ["--a=1", "--b", "2"]),
        ("KUBELET_EXTRA_ARGS=--a=1\n", ["--a=1"]),
        ("KUBELET_EXTRA_ARGS='--a=1'\n", ["--a=1"]),
        ("KUBELET_EXTRA_ARGS=\n", []),
        ("# KUBELET_EXTRA_ARGS=--a\n; X=--b\nno variable\n", []),
        ("KUBELET_EXTRA_ARGS=--a=\"0-1\" '--b=c d'\n", ["--a=0-1", "--b=c d"]),
        ("KUBELET_EXTRA_ARGS=\"--a='0-1'\"\n", ["--a=0-1"]),
        ('A="--a=1 \\\n  --b=2"\nB="--c=3"\n', ["--a=1", "--b=2", "--c=3"]),
        # Variables of the program's environment; and what is no flag, and yet given as one.
        ('HOME="/root"\nDAEMON_ARGS=--a=1\nHTTPS_PROXY=http://a -b\n', ["--a=1"]),
        ("KUBELET_EXTRA_ARGS=a=1 --b=2\n", ["a=1", "--b=2"]),
    ],
)
def test_environment(text: str, words: list[str]) -> None:
    assert environment_words(text) == words


LINES = "# the flags\n--kubeconfig=${SNAP_DATA}/x\n\n--cpu-manager-policy none\n--v=2\n--kube-reserved=cpu=1\n"


def test_lines() -> None:
    assert line_words(LINES) == [
        "--kubeconfig=${SNAP_DATA}/x",
        "--cpu-manager-policy",
        "none",
        "--v=2",
        "--kube-reserved=cpu=1",
    ]


def test_with_lines() -> None:
    changed = with_lines(LINES, ["kubeReserved", "cpuManagerPolicy"], ["--cpu-manager-policy=static"])
    assert changed == "# the flags\n--kubeconfig=${SNAP_DATA}/x\n\n--cpu-manager-policy=static\n--v=2\n"
    assert with_lines("--v=2", ["kubeReserved"], ["--kube-reserved=cpu=1"]) == "--v=2\n--kube-reserved=cpu=1\n"
    assert with_lines("", ["kubeReserved"], ["--a", "--b"]) == "--a\n--b\n"
    assert with_lines(LINES, [], []) == LINES


def test_lines_behind_the_end_of_flags_stay() -> None:
    text = "--v=2\n--\n--cpu-manager-policy=none\n"
    assert with_lines(text, ["cpuManagerPolicy"], ["--cpu-manager-policy=static"]) == (
        "--v=2\n--cpu-manager-policy=static\n--\n--cpu-manager-policy=none\n"
    )
    both = "--cpu-manager-policy=none\n--v=2\n--\n--cpu-manager-policy=none\n"
    assert with_lines(both, ["cpuManagerPolicy"], []) == "--v=2\n--\n--cpu-manager-policy=none\n"


def test_quotes_in_lines_count_nothing() -> None:
    text = "--eviction-hard=\"memory.available<100Mi,nodefs.available<1Gi\"\n--cpu-manager-policy='static'\n"
    assert line_words(text) == [
        "--eviction-hard=memory.available<100Mi,nodefs.available<1Gi",
        "--cpu-manager-policy=static",
    ]


def test_other_flags_of_a_line_stay() -> None:
    text = "--cpu-manager-policy=static --reserved-cpus=0 --v 2\n"
    assert with_lines(text, ["cpuManagerPolicy"], ["--cpu-manager-policy=none"]) == (
        "--cpu-manager-policy=none\n--reserved-cpus=0 --v 2\n"
    )
    assert with_lines("--v=2 --cpu-manager-policy static\n", ["cpuManagerPolicy"], []) == "--v=2\n"


@pytest.mark.parametrize(
    ("texts", "lists"),
    [
        ([], []),
        (["write-kubeconfig-mode: 0644\n"], [[]]),  # of no interest, however it is written
        (["kubelet-arg:\n- max-pods=50\n- --v=2\n"], [["--max-pods=50", "--v=2"]]),
        (["kubelet-arg: max-pods=50\nnode-label: [a]\n"], [["--max-pods=50"]]),
        (["kubelet-arg: [a, b]\n"], [["--a", "--b"]]),
        (["a: 1\nkubelet-arg:\n\n  # why\n  - a=1\n\nb: 0644\n"], [["--a=1"]]),
        (["kubelet-arg:\r\n  - a=1\r\nb: 1\r\n"], [["--a=1"]]),
        # A later file's list takes the place of the earlier ones, or is added with a plus.
        (["kubelet-arg: [a]\n", "kubelet-arg: [b]\n"], [[], ["--b"]]),
        (["kubelet-arg: [a]\n", "kubelet-arg+: [b]\n", "kubelet-arg+: [c]\n"], [["--a"], ["--b"], ["--c"]]),
        (["kubelet-arg: [a]\n", "kubelet-arg+: [b]\n", "kubelet-arg: [c]\n"], [[], [], ["--c"]]),
        (['"kubelet-arg": [a]\n'], [["--a"]]),
        (["'kubelet-arg+':\n- a\n"], [["--a"]]),
        (["kubelet-arg: [\n  a,\n]\n"], [["--a"]]),
        # As Rancher writes it.
        (['{\n  "node-label": ["x"],\n  "kubelet-arg": [\n    "a=1"\n  ]\n}'], [["--a=1"]]),
        (["kubelet-arg: [a]\n", '{"kubelet-arg+": ["b"]}\n', '{"kubelet-arg": "c"}'], [[], [], ["--c"]]),
        # Of several documents the first is read.
        (["---\nkubelet-arg: [a]\n"], [["--a"]]),
        (["# why\n%YAML 1.2\n\n--- # here\nkubelet-arg:\n- a\n"], [["--a"]]),
        (["kubelet-arg:\n- a\n---\n"], [["--a"]]),
        (["kubelet-arg:\n  - a\n...\n"], [["--a"]]),
        (["kubelet-arg:\r\n- a\r\n---\r\nkubelet-arg:\r\n- b\r\n"], [["--a"]]),
        (["---\nx: 1\n---\nkubelet-arg: [b]\n"], [[]]),
        (["---\n"], [[]]),
        (['---\n{"kubelet-arg": ["a"]}\n...\n'], [["--a"]]),
        (["kube-apiserver-arg: [a]\nmy-kubelet-arg: [b]\n"], [[]]),
    ],
)
def test_kubelet_args(texts: list[str], lists: list[list[str]]) -> None:
    assert kubelet_args(texts) == lists


@pytest.mark.parametrize(
    ("text", "message"), [("kubelet-arg: *x\n", "alias"), ('{"kubelet-arg": ["a"\n', "is the file whole")]
)
def test_kubelet_args_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kubelet_args([text])


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).map(lambda text: "x" + text))
)
def test_what_is_written_reads_back(words: list[str]) -> None:
    arguments = ["--" + word for word in words]
    assert kubelet_args([kubelet_arg_file(arguments)]) == [arguments]
