# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module start_check on the demo's fleet: it answers, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .conftest import CopyOf, ansible_playbook, fingerprint, play, task

CONFIG = {
    "xeon": "var/lib/kubelet/config.yaml",
    "epyc": "etc/kubernetes/kubelet-config.yaml",
    "edge": "etc/kubernetes/kubelet/config.json",
}

WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": True},
    "reservation": {"count": 4, "strategy": "spread"},
}


def test_a_module_of_a_saved_node_reads_that_node(copy_of: CopyOf, tmp_path: Path) -> None:
    """Also where only the inventory says where the files are, as for `ansible -m`; not the machine that runs it."""
    hosts = {node: {"kubelet_node_root": str(copy_of(node, node))} for node in ("xeon", "edge")}
    run = ansible_playbook(tmp_path / "run", play(task("start_check")), hosts)
    assert run.status == 0, run.account()
    assert {host: run.results[host][0]["node"] for host in hosts} == {"xeon": "xeon", "edge": "edge"}


def test_this_machine_is_a_node_of_another_name_only_where_that_was_said(copy_of: CopyOf, tmp_path: Path) -> None:
    """A saved node whose root was forgotten: a module, and a role with its default of a root."""
    hosts = {"forgotten": {}, "saved": {"kubelet_node_root": str(copy_of("xeon", "saved"))}, "localhost": {}}
    run = ansible_playbook(tmp_path / "run", play(task("cpu_topology_info")), hosts)
    refused = run.results["forgotten"][0]
    assert refused["failure"]["kind"] == "this_machine", run.account()
    assert "forgotten: the connection is local and no kubelet_node_root is set" in refused["msg"]
    assert [run.results[name][0]["outcome"] for name in ("saved", "localhost")] == ["ok", "ok"], run.account()
    plays = play(task("cpu_topology_info"), vars={"kubelet_node_root": "/"})
    run = ansible_playbook(tmp_path / "run", plays, {"forgotten": {}})
    assert run.status == 0, run.account()
    hosts = {"forgotten": {}, "said": {"kubelet_node_root": "/"}}
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.plan_changes", hosts)
    assert "forgotten: the connection is local and no kubelet_node_root is set" in run.output
    assert "said: the connection is local" not in run.output


def test_start_check(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {}

    def ask(name: str, node: str, **parameters: Any) -> Path:
        root = copy_of(node, name)
        hosts[name] = {"parameters": {"root": str(root), **parameters}}
        return root

    for node in CONFIG:
        ask(node, node)
    ask("planned", "xeon", **WANTED)
    ask("refused", "epyc", topology_manager_policy="single-numa-node", cpu_manager_policy_options={"align": "true"})
    config = ask("old", "epyc", kubelet_version="1.32.4") / CONFIG["epyc"]
    gate = "featureGates:\n  CPUManager: true\n"
    config.write_text(config.read_text(encoding="utf-8") + gate, encoding="utf-8")
    config = ask("new", "epyc", kubelet_version="v1.36.0") / CONFIG["epyc"]
    config.write_text(config.read_text(encoding="utf-8") + gate, encoding="utf-8")
    config = ask("broken", "epyc") / CONFIG["epyc"]
    config.write_text(
        config.read_text(encoding="utf-8") + "allowedUnsafeSysctls: [net.core.somaxconn\n", encoding="utf-8"
    )
    config = ask("misspelt", "epyc") / CONFIG["epyc"]
    config.write_text(
        config.read_text(encoding="utf-8").replace("reservedSystemCPUs", "reservedCPUs"), encoding="utf-8"
    )
    config = ask("tagged", "epyc") / CONFIG["epyc"]
    config.write_text(config.read_text(encoding="utf-8") + "podCIDR: !net 10.0.0.0/24\n", encoding="utf-8")

    config = ask("huge", "epyc") / CONFIG["epyc"]
    config.write_text(
        config.read_text(encoding="utf-8").replace('reservedSystemCPUs: "0-3"', "kubeReserved: {cpu: 1000E}"),
        encoding="utf-8",
    )

    before = fingerprint(tmp_path / "nodes")
    plays = play({**task("start_check"), "args": "{{ parameters }}"})
    runs = [
        ansible_playbook(tmp_path / "check", plays, hosts, "--check", "--diff"),
        ansible_playbook(tmp_path / "run", plays, hosts, "--diff"),
        ansible_playbook(tmp_path / "again", plays, hosts),
    ]
    assert fingerprint(tmp_path / "nodes") == before
    check, run, again = ({host: played.last(host) for host in hosts} for played in runs)
    assert check == run == again
    assert [played.status for played in runs] == [0, 0, 0], runs[0].account()
    assert run["tagged"]["findings"] == run["epyc"]["findings"]  # a tag that YAML does not have makes a text

    # Of an earlier life: the policy none, and a checkpoint of the policy static.
    assert fatal(run["xeon"]) == [
        (
            'could not restore state from checkpoint: configured policy "none" differs from state checkpoint policy'
            ' "static", please drain this node and delete the CPU manager checkpoint file'
            ' "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
        )
    ]
    assert run["epyc"]["starts"]
    assert [finding["cause"] for finding in run["epyc"]["findings"]] == [
        (
            "the reservation 0-3 splits cores: no pod can have their other threads, CPUs 64-67, for itself with"
            " full-pcpus-only: 4 CPUs that the scheduler counts"
        )
    ]
    assert fatal(run["edge"])
    assert not run["edge"]["starts"]

    assert fatal(run["planned"]) == [
        'not all reserved cpus: "0-1,24-25" are present in defaultCpuSet: "0-7,9-23,25-31"'
    ]
    assert fatal(run["refused"]) == ['new static policy error: unknown CPU Manager Policy option: "align"']

    assert run["old"]["starts"]
    assert run["old"]["kubelet_version"] == "1.32"
    assert fatal(run["new"]) == ["unrecognized feature gate: CPUManager"]
    assert fatal(run["broken"]) == ["failed to decode: yaml: line 23: did not find expected ',' or ']'"]
    assert fatal(run["misspelt"]) == ["[cpumanager] unable to determine reserved CPU resources for static policy"]
    (huge,) = [finding for finding in run["huge"]["findings"] if finding["fatal"]]
    assert huge["cause"] == "the static policy reserves 1000E CPUs"
    warning = run["misspelt"]["findings"][0]
    assert warning == {
        "text": 'strict decoding error: unknown field "reservedCPUs"',
        "cause": "the kubelet 1.36 has no such field, and ignores it",
        "remedy": "write reservedSystemCPUs",
        "fatal": False,
        "where": "reservedCPUs",
        "context": "",
    }


# What of kubeadm's own source has the kubelet's flags.
WRITER = "nodeRegistration.kubeletExtraArgs of kubeadm's configuration"


def test_what_decides_beside_the_file(copy_of: CopyOf, tmp_path: Path) -> None:
    """Cgroups that are not saved, a flag that is gone, a drop-in file without head."""
    hosts: dict[str, dict[str, Any]] = {}

    def stateless(name: str, node: str, **parameters: Any) -> Path:
        """Return a node whose kubelet has not written down a state yet."""
        root = copy_of(node, name)
        hosts[name] = {"parameters": {"root": str(root), **parameters}}
        (root / "var/lib/kubelet/cpu_manager_state").unlink()
        return root

    # Its files have no /sys/fs/cgroup.
    root = stateless("unseen", "xeon")
    enforced = "enforceNodeAllocatable: [pods, kube-reserved]\nkubeReservedCgroup: /podruntime\n"
    config = root / CONFIG["xeon"]
    config.write_text(config.read_text(encoding="utf-8") + enforced, encoding="utf-8")
    root = stateless("flag", "xeon", kubelet_version="1.36")
    flags = root / "var/lib/kubelet/kubeadm-flags.env"
    flags.write_text(
        'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.10"\n', encoding="utf-8"
    )
    drop_in = stateless("headless", "edge") / "etc/kubernetes/kubelet/config.json.d/10-cpus.conf"
    drop_in.parent.mkdir()
    drop_in.write_text('reservedSystemCPUs: "0"\n', encoding="utf-8")
    # A message needs no node.
    said = 'E1127 08:26:44.1 1 run.go:72] "command failed" err="failed to run Kubelet: unknown policy: \\"Static\\""'
    hosts["said"] = {"parameters": {"log_line": said}, "ansible_connection": "ssh", "ansible_host": "192.0.2.1"}

    run = ansible_playbook(tmp_path / "run", play({**task("start_check"), "args": "{{ parameters }}"}), hosts)
    assert run.status == 0, run.account()
    unseen, flag, headless, explained = (run.last(host) for host in hosts)
    assert explained["explained"][0]["remedy"] == "write none or static"
    assert unseen["starts"] is None
    assert unseen["findings"] == []
    assert unseen["unknown"] == [
        {
            "reason": ("it cannot be seen whether the kubelet finds the cgroup /podruntime.slice"),
            "where": "kubeReservedCgroup",
        }
    ]
    assert fatal(flag) == ["unknown flag: --pod-infra-container-image"]
    assert flag["findings"] == [
        {
            "text": "unknown flag: --pod-infra-container-image",
            "cause": "Kubernetes 1.35 removed this flag",
            "remedy": "remove it; it is in %s, and %s writes it there again" % (flags, WRITER),
            "fatal": True,
            "where": "--pod-infra-container-image",
            "context": "failed to parse kubelet flag: ",
        }
    ]
    assert fatal(headless) == ["Object 'Kind' is missing in 'reservedSystemCPUs: \"0\"\n'"]
    directory = "/etc/kubernetes/kubelet/config.json.d"
    (finding,) = headless["findings"]
    assert finding["where"] == directory + "/10-cpus.conf"
    assert finding["context"] == (
        'failed to merge kubelet configs: failed to walk through kubelet dropin directory "%s": failed to load kubelet'
        " dropin file, path: %s/10-cpus.conf, error: " % (directory, directory)
    )


def fatal(result: dict[str, Any]) -> list[str]:
    assert not result["changed"]
    assert result["unknown"] == []
    assert result["starts"] is not any(finding["fatal"] for finding in result["findings"])
    return [finding["text"] for finding in result["findings"] if finding["fatal"]]


def test_saved_nodes_try_no_upgrade(copy_of: CopyOf, tmp_path: Path) -> None:
    """They say so, which is no failure. tests/cluster/test_trial.py has those that do."""
    hosts = {
        name: {"kubelet_node_root": str(copy_of(name, name)), "kubelet_trial_program": "/usr/bin/kubelet-1.37"}
        for name in CONFIG
    }
    before = fingerprint(tmp_path / "nodes")
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.try_upgrade", hosts)
    assert run.status == 0, run.account()
    assert "%s:\n  cannot be tried: a saved node" % ", ".join(CONFIG) in run.last("xeon")["msg"]
    assert fingerprint(tmp_path / "nodes") == before
    (tmp_path / "bastion").mkdir()
    bastion = {**hosts["edge"], "kubelet_node_root": str(tmp_path / "bastion")}
    for skips in ("false", "true"):
        left_out = ("-e", "cpu_manager_skip_hosts_without_kubelet=" + skips)
        hosts_of_all = {**hosts, "b": bastion}
        beside = ansible_playbook(tmp_path / skips, "kubenode.cpu_manager.try_upgrade", hosts_of_all, *left_out)
        assert (beside.status == 0) is (skips == "true"), beside.account()
    del hosts["edge"]["kubelet_trial_program"]
    run = ansible_playbook(tmp_path / "again", "kubenode.cpu_manager.try_upgrade", hosts)
    assert run.status != 0
    assert "missing required arguments: kubelet_trial_program" in run.last("edge")["msg"]
