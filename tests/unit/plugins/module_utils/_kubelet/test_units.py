# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubelets that are found by their units: plugins/module_utils/_kubelet/units.py, and who goes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.installation import (
    find_installation,
    stopped_version,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.units import KubeletUnit, find_unit
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

UNIT = "etc/systemd/system/kubelet.service"
WORDS = ("/opt/bin/kubelet", "--config=/opt/kubelet.yaml")
LINE = " ".join(WORDS)


def unit_of(root: Path) -> KubeletUnit | None:
    return find_unit(Tree(str(root)))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (LINE, WORDS),
        ("-" + LINE, WORDS),
        ("/usr/bin/taskset -c 0-3 " + LINE, WORDS),
        ("/usr/bin/env GOMAXPROCS=2 " + LINE, WORDS),
        ("/usr/bin/nice -n -5 " + LINE, WORDS),
        ("/bin/sh -c 'exec %s'" % LINE, WORDS),
        ("/bin/bash -ec '%s'" % LINE, WORDS),
        # OpenShift's.
        ("/usr/bin/hyperkube kubelet --config=/opt/kubelet.yaml", ("kubelet", WORDS[1])),
        ("/usr/local/bin/kubenswrapper " + LINE, WORDS),
        ("/usr/bin/kubensenter /usr/local/bin/kubenswrapper " + LINE, WORDS),
        # What a shell makes of it is not known.
        ("/bin/bash -c 'source /etc/kubelet.env; exec %s $ARGS'" % LINE, ()),
        ("/bin/sh -c '[ -e /etc/x ] && kubelet --config=/opt/kubelet.yaml'", ()),
    ],
)
def test_a_unit_that_starts_a_kubelet_is_found_by_what_it_runs(
    command: str, words: Sequence[str], tmp_path: Path
) -> None:
    write(tmp_path, "usr/lib/systemd/system/node-agent.service", ("[Service]\nExecStart=%s\n" % command).encode())
    assert unit_of(tmp_path) == KubeletUnit("node-agent", tuple(words), "" if words else "a shell")


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("kubelet-exporter.service", "/usr/bin/kubelet-exporter --port=9"),
        ("node.service", "/usr/bin/docker run --name kubelet hyperkube kubelet"),
        ("kubelet@.service", LINE),
        ("kubelet.timer", LINE),
        ("clean.service", "/bin/sh -c 'rm -rf /var/lib/kubelet/x'"),
        ("kubelet.service", ""),
    ],
)
def test_what_starts_no_kubelet(path: str, command: str, tmp_path: Path) -> None:
    write(tmp_path, "etc/systemd/system/" + path, ("[Service]\nExecStart=%s\n" % command).encode())
    assert unit_of(tmp_path) is None


@pytest.mark.parametrize("command", ["docker run -d image kubelet", "docker logs -f kubelet", "/opt/start-kubelet"])
def test_a_unit_of_the_kubelets_own_name_that_starts_a_container_shows_that_there_is_one(
    command: str, tmp_path: Path
) -> None:
    write(tmp_path, UNIT, ("[Service]\nExecStart=%s\n" % command).encode())
    program = command.partition(" ")[0].rpartition("/")[2]
    assert unit_of(tmp_path) == KubeletUnit("kubelet", (), "another program (%s)" % program)
    write(tmp_path, "etc/systemd/system/node-agent.service", ("[Service]\nExecStart=%s\n" % LINE).encode())
    assert unit_of(tmp_path) == KubeletUnit("node-agent", WORDS)


def test_the_unit_of_the_kubelets_own_name_comes_first_and_one_that_can_be_read(tmp_path: Path) -> None:
    for name, command in (("a", "/bin/sh -c 'kubelet $A'"), ("b", LINE), ("kubelet", "/usr/bin/kubelet")):
        write(tmp_path, "etc/systemd/system/%s.service" % name, ("[Service]\nExecStart=%s\n" % command).encode())
    assert unit_of(tmp_path) == KubeletUnit("kubelet", ("/usr/bin/kubelet",))
    (tmp_path / UNIT).unlink()
    assert unit_of(tmp_path) == KubeletUnit("b", WORDS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a node of no known distribution, whose kubelet is down."""
    write_machine(tmp_path, "1s4c2t")
    write(tmp_path, UNIT, b"[Service]\nExecStart=/opt/bin/kubelet $ARGS\n")
    write(tmp_path, UNIT + ".d/10-args.conf", b'[Service]\nEnvironment="ARGS=--config=/opt/kubelet.yaml"\n')
    write(tmp_path, "opt/kubelet.yaml", HEADER.encode() + b"cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n")
    return tmp_path


def test_a_kubelet_that_is_down_has_the_settings_that_its_unit_gives_it(root: Path) -> None:
    node = Node(Tree(str(root)), minor=33)
    configuration = node.needed_configuration()
    assert configuration.values["cpuManagerPolicy"] == "static"
    kubelet = node.kubelet(configuration)
    assert kubelet is not None
    assert (kubelet["distribution"], kubelet["service"], kubelet["pid"]) == ("unknown", "kubelet", None)
    assert (kubelet["config_path"], tuple(kubelet["command_line"])) == ("/opt/kubelet.yaml", WORDS)
    assert predict_start(node).starts


def test_a_flag_of_its_unit_is_refused_as_one_of_a_process_is(root: Path) -> None:
    drop_in = root / (UNIT + ".d/10-args.conf")
    drop_in.write_text('[Service]\nEnvironment="ARGS=--config=/opt/kubelet.yaml --allow-privileged=true"\n')
    (finding,) = predict_start(Node(Tree(str(root)), minor=33)).findings
    assert finding.text == "unknown flag: --allow-privileged"
    assert finding.remedy == "remove it; it is in %s" % drop_in


def test_a_file_that_its_unit_names_and_is_not_there_is_missed(root: Path) -> None:
    (root / "opt/kubelet.yaml").unlink()
    _configuration, problem = Node(Tree(str(root)), minor=33).found()
    assert problem is not None
    assert problem.where == str(root / "opt/kubelet.yaml")
    assert "the kubelet was started with it" in str(problem)


def test_of_a_unit_that_cannot_be_read_the_file_is_asked_for(root: Path) -> None:
    write(root, UNIT, b"[Service]\nExecStart=/bin/sh -c 'exec kubelet $(cat /etc/args)'\n")
    node = Node(Tree(str(root)), minor=33)
    configuration, problem = node.found()
    assert configuration is None
    assert problem is not None
    assert problem.kind == "no_configuration"
    assert "kubelet.service" in str(problem)
    with pytest.raises(NodeError, match=r"kubelet\.service"):
        predict_start(node)
    assert predict_start(Node(Tree(str(root)), "/opt/kubelet.yaml", minor=33)).starts


def test_a_unit_counts_only_where_no_distribution_is_known(root: Path) -> None:
    write(root, "var/lib/kubelet/config.yaml", HEADER.encode())
    installation = find_installation(Tree(str(root)))
    assert installation is not None
    assert installation.distribution.name == "kubeadm"
    assert installation.config_path == "/opt/kubelet.yaml"


@pytest.mark.parametrize(
    ("program", "mode", "version"),
    [
        ("/opt/bin/kubelet", 0o755, "1.33.1"),
        ("/opt/bin/kubelet", 0o777, ""),
        ("/usr/local/bin/k3s server", 0o755, "1.33.1"),
        # It would be started.
        ("/usr/bin/snap run microk8s.daemon-kubelite", 0o755, ""),
    ],
)
def test_the_program_of_the_unit_says_its_version_if_it_is_roots(
    program: str, mode: int, version: str, tmp_path: Path
) -> None:
    write(tmp_path, UNIT, ("[Service]\nExecStart=%s\n" % program).encode())
    path = program.split(maxsplit=1)[0]
    write(tmp_path, path.lstrip("/"), b"")
    (tmp_path / path.lstrip("/")).chmod(mode)
    tree = Tree(str(tmp_path))
    installation = find_installation(tree, config_path="/x")
    assert installation is not None
    asked: list[Sequence[str]] = []

    def run(arguments: Sequence[str]) -> str:
        asked.append(arguments)
        return "Kubernetes v1.33.1"

    distribution = installation.distribution._replace(services=("kubelet",))
    assert stopped_version(tree, distribution, run) == version
    assert asked == ([[path, "--version"]] if version else [])


RUNNING = "/usr/bin/kubelet --config=/opt/kubelet.yaml"


@pytest.mark.parametrize(
    ("in_unit", "runs", "names"),
    [
        ("--config=/opt/kubelet.yaml", "", ""),
        ("--config=/opt/kubelet.yaml --cpu-manager-policy=static", "--cpu-manager-policy=none", "--cpu-manager-policy"),
        (
            "--config=/opt/kubelet.yaml --kube-reserved=cpu=1 --cpu-manager-policy=static",
            "",
            "--cpu-manager-policy and --kube-reserved",
        ),
        # What nobody here knows, what no file gives, and what only the process has.
        ("--config=/opt/kubelet.yaml --token=x", "--token=y", ""),
        ("--config=/opt/kubelet.yaml --reserved-cpus=$(cat /x)", "--reserved-cpus=0", ""),
        ("--config=/opt/kubelet.yaml", "--cpu-manager-policy=static", ""),
    ],
)
def test_a_kubelet_that_was_restarted_without_a_daemon_reload_does_not_run_as_its_unit_says(
    root: Path, in_unit: str, runs: str, names: str
) -> None:
    write(root, UNIT + ".d/10-args.conf", ('[Service]\nEnvironment="ARGS=%s"\n' % in_unit).encode())
    write(root, "proc/7/cmdline", "\0".join([*RUNNING.split(), *runs.split()]).encode())
    notes = [note for note in Node(Tree(str(root)), minor=33).own_notes() if "daemon-reload" in note]
    assert len(notes) == bool(names)
    assert all("was not started with %s as the unit kubelet.service has it now" % names in note for note in notes)
