# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes on whose starts people have reported, and what is right to say of them; each with its siblings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import start_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, Files, write_cgroups
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.started import CONFIG, drift_of, node, state
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT


def told(root: Path, minor: int = 33) -> tuple[bool | None, list[dict[str, Any]]]:
    """Return whether the kubelet starts, and what is found."""
    answer = start_report(node(root, minor), {})
    return answer["starts"], answer["findings"]


# --- a service in the place of a slice --------------------------------------------------------------------

RESERVED = HEADER + (
    "cgroupDriver: systemd\nfailCgroupV1: false\nenforceNodeAllocatable: [pods, kube-reserved]\n"
    "kubeReserved: {cpu: 1500m, memory: 1Gi}\nkubeReservedCgroup: %s\nsystemReserved: {cpu: 2000m, memory: 2Gi}\n"
)


def hierarchies(root: Path, *cgroups: str) -> None:
    for hierarchy in ("cpuset", "memory", "cpu,cpuacct", "pids"):
        for cgroup in cgroups:
            (root / "sys/fs/cgroup" / hierarchy / cgroup).mkdir(parents=True, exist_ok=True)


def test_the_service_of_the_kubelet_is_no_slice(root: Path) -> None:
    write(root, CONFIG, RESERVED % "/system.slice/kubelet.service")
    write_cgroups(root, V1, {"system.slice/kubelet.service": Files("0-7", "0", (500,))}, "0-7", "0")
    hierarchies(root, "system.slice/kubelet.service")
    starts, (finding,) = told(root)
    assert starts is False
    assert finding["text"] == (
        'Failed to enforce Kube Reserved Cgroup Limits on "/system.slice/kubelet.service": cgroup ["kubelet.service"]'
        " has some missing paths: /sys/fs/cgroup"
    )
    assert finding["cause"].partition("; with cgroup v1")[0] == (
        "there is no cgroup /kubelet.service.slice, which the kubelet makes of /system.slice/kubelet.service with the"
        " systemd driver"
    )
    assert "/kube.slice" in finding["remedy"]
    hierarchies(root, "kubelet.service.slice", "kube.slice")
    assert told(root) == (True, [])
    write(root, CONFIG, RESERVED % "/kube.slice")
    assert told(root) == (True, [])


# --- a flag in the place of a map ---------------------------------------------------------------------------

EKS_CONFIG = "/etc/kubernetes/kubelet/kubelet-config.json"
EKS_DROP_IN = "/etc/systemd/system/kubelet.service.d/30-kubelet-extra-args.conf"
EKS_VALUES = {
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "cgroupDriver": "systemd",
    "cpuManagerPolicy": "static",
    "kubeReserved": {"cpu": "80m", "ephemeral-storage": "1Gi", "memory": "1843Mi"},
}


def write_eks(root: Path, extra: str, **values: Any) -> None:
    (root / CONFIG).unlink()
    write(root, EKS_CONFIG[1:], json.dumps({**EKS_VALUES, **values}))
    unit = "[Service]\nExecStart=/usr/bin/kubelet --config %s $KUBELET_EXTRA_ARGS\n" % EKS_CONFIG
    write(root, "etc/systemd/system/kubelet.service", unit)
    write(root, EKS_DROP_IN[1:], "[Service]\nEnvironment='KUBELET_EXTRA_ARGS=%s'\n" % extra)


@pytest.mark.parametrize("flag", ['--kube-reserved="memory=1355Mi"', "--kube-reserved=memory=1355Mi"])
def test_a_flag_takes_away_the_cpus_that_are_reserved(root: Path, flag: str) -> None:
    write_eks(root, flag)
    starts, (refusal, harm) = told(root)
    place = str(root) + EKS_DROP_IN
    assert (starts, refusal["fatal"], harm["fatal"]) == (False, True, False)
    assert refusal["text"] == "[cpumanager] unable to determine reserved CPU resources for static policy"
    lost = "--kube-reserved in %s takes the place of the whole kubeReserved of %s%s" % (place, root, EKS_CONFIG)
    assert lost in refusal["cause"]
    assert "cpu: 80m" in refusal["cause"]
    assert refusal["remedy"] == "add cpu=80m to --kube-reserved in %s, or remove that flag" % place
    assert (harm["where"], harm["cause"].startswith(lost)) == ("--kube-reserved", True)
    plan = drift_of(root, {"cpu_manager_policy": "static", "kube_reserved_cpu": "80m"})
    assert lost in "".join(note for note in plan["notes"] if getattr(note, "check", "") == "field-ignored")
    assert lost in plan["found_refusal"]
    # The remedy can be followed.
    write(root, EKS_DROP_IN[1:], "[Service]\nEnvironment=KUBELET_EXTRA_ARGS=--kube-reserved=memory=1355Mi,cpu=80m\n")
    starts, findings = told(root)
    assert starts is True
    assert [finding["where"] for finding in findings if "whole" in finding["cause"]] == ["--kube-reserved"]


@pytest.mark.parametrize(
    ("extra", "values", "lost"),
    [
        (
            "--cpu-manager-policy-options=full-pcpus-only=true",
            {"cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}},
            "cpuManagerPolicyOptions of %s, in which strict-cpu-reservation: true no longer counts",
        ),
        (
            "--eviction-hard=nodefs.available<5%",
            {"evictionHard": {"memory.available": "1Gi", "nodefs.available": "10%"}},
            "evictionHard of %s, in which memory.available: 1Gi no longer counts",
        ),
        (
            "--system-reserved=memory=1Gi",
            {"systemReserved": {"cpu": "200m"}},
            "systemReserved of %s, in which cpu: 200m no longer counts",
        ),
        # Gates are merged, and what gives the same takes nothing away.
        ("--feature-gates=CPUManagerPolicyAlphaOptions=true", {"featureGates": {"SeparateDiskForX": False}}, ""),
        ("--kube-reserved=cpu=80m,ephemeral-storage=1Gi,memory=1843Mi", {}, ""),
    ],
)
def test_flags_of_other_maps(root: Path, extra: str, values: dict[str, Any], lost: str) -> None:
    write_eks(root, extra.replace("%", "%%"), **values)
    found = [finding["cause"] for finding in told(root)[1] if "takes the place of the whole" in finding["cause"]]
    expected = [lost % (str(root) + EKS_CONFIG)] if lost else []
    assert [cause.partition("the whole ")[2] for cause in found] == expected


def test_each_file_whose_members_are_lost_is_named(root: Path) -> None:
    """The default thresholds, which come into the file where a drop-in has one, are nobody's."""
    flags = "--config-dir=/etc/conf.d --eviction-hard=memory.available<1Gi --kube-reserved=memory=1Gi"
    write_eks(root, flags, evictionHard={"imagefs.available": "20%"})
    write(root, "etc/conf.d/10.conf", HEADER + "evictionHard: {nodefs.available: 6%}\nsystemReserved: {cpu: 200m}\n")
    found = [finding["cause"].partition("the whole ")[2] for finding in told(root)[1] if not finding["fatal"]]
    assert [cause for cause in found if "10.conf" in cause] == [
        "evictionHard of %s/etc/conf.d/10.conf, in which nodefs.available: 6%% no longer counts" % root
    ]
    assert sorted(cause for cause in found if EKS_CONFIG in cause) == [
        "evictionHard of %s%s, in which imagefs.available: 20%% no longer counts" % (root, EKS_CONFIG),
        "kubeReserved of %s%s, in which cpu: 80m, ephemeral-storage: 1Gi no longer counts" % (root, EKS_CONFIG),
    ]


# --- a list in the place of a list ----------------------------------------------------------------------------

RKE2 = "/etc/rancher/rke2/config.yaml.d/"
WANTED = {"cpu_manager_policy": "static", "kube_reserved_cpu": "200m", "system_reserved_cpu": "200m"}
SERVER = """\
kubelet-arg:
- "cpu-manager-policy=static"
- "system-reserved=cpu=200m,memory=100Mi"
- "kube-reserved=cpu=200m"
"""


def write_rke2(root: Path, **later: str) -> None:
    (root / CONFIG).unlink()
    (root / "var/lib/rancher/rke2/agent").mkdir(parents=True)
    write(root, RKE2[1:] + "90-harvester-agent.yaml", 'kubelet-arg:\n- "max-pods=110"\n')
    write(root, RKE2[1:] + "90-harvester-server.yaml", SERVER)
    for name, text in later.items():
        write(root, "%s%s.yaml" % (RKE2[1:], name), text)


def test_a_later_file_whose_list_takes_the_place_of_others(root: Path) -> None:
    write_rke2(root, **{"99-max-pods": 'kubelet-arg:\n- "max-pods=200"\n'})
    later = "%s%s99-max-pods.yaml" % (root, RKE2)
    (note,) = (note for note in node(root, 28).own_notes() if "kubelet-arg" in note)
    assert note == (
        "%s: its kubelet-arg takes the place of that of %s%s90-harvester-server.yaml, so that --cpu-manager-policy,"
        " --system-reserved, --kube-reserved there do not count; write it as kubelet-arg+, which adds to it"
        % (later, root, RKE2)
    )
    plan = rollout_report(node(root, 28), WANTED, ChangeTerms())
    assert [row["found"] for row in plan["drift"]] == ["none", "0", "0"]
    assert note in plan["notes"]
    (refusal,) = plan["refusals"]
    assert (refusal["where"], refusal["remedy"]) == (later, "write it there as kubelet-arg+, and run again")
    assert refusal["text"] == (
        "its kubelet-arg takes the place of those of all files before it, also of %s%s90-kubenode-cpu-manager.yaml"
        % (root, RKE2)
    )
    # The remedy can be followed: then all of it counts.
    write(root, RKE2[1:] + "99-max-pods.yaml", 'kubelet-arg+:\n- "max-pods=200"\n')
    assert not [note for note in node(root, 28).own_notes() if "kubelet-arg" in note]
    assert rollout_report(node(root, 28), WANTED, ChangeTerms())["drift"] == []


def test_what_adds_takes_nothing_away(root: Path) -> None:
    reserved = 'kubelet-arg+:\n- "system-reserved=cpu=200m,memory=100Mi"\n- "kube-reserved=cpu=200m"\n'
    write_rke2(
        root,
        **{
            "99-max-pods": 'kubelet-arg:\n- "max-pods=200"\n',
            "99-z00": reserved,
            "99-z01": 'kubelet-arg+:\n- "cpu-manager-policy=static"\n',
        },
    )
    # What is given again behind it counts.
    assert not [note for note in node(root, 28).own_notes() if "kubelet-arg" in note]
    assert rollout_report(node(root, 28), WANTED, ChangeTerms())["drift"] == []


# --- what kubelets were seen to take ----------------------------------------------------------------------------


def of_flags(root: Path, minor: int, flags: str, values: str = "") -> tuple[bool | None, list[str]]:
    """Return whether a kubelet with these flags starts, and what it refuses."""
    write(root, CONFIG, HEADER + values)
    unit = "[Service]\nExecStart=/usr/bin/kubelet --config=/%s %s\n" % (CONFIG, flags)
    write(root, "etc/systemd/system/kubelet.service", unit)
    starts, findings = told(root, minor)
    return starts, [finding["text"] for finding in findings if finding["fatal"]]


OF_NUMA = "--topology-manager-policy-options=max-allowable-numa-nodes=9,prefer-closest-numa-nodes=true"


@pytest.mark.parametrize("minor", [33, 36])
@pytest.mark.parametrize(
    ("flags", "values"),
    [
        (OF_NUMA, ""),
        ("--topology-manager-policy=restricted " + OF_NUMA, ""),
        ("--topology-manager-policy-options=", "topologyManagerPolicyOptions: {max-allowable-numa-nodes: many}\n"),
        ("--config-dir=/etc/kubernetes/kubelet.conf.d", "cpuManagerPolicy: none\n"),
    ],
)
def test_what_is_taken(root: Path, minor: int, flags: str, values: str) -> None:
    (root / "etc/kubernetes/kubelet.conf.d").mkdir(parents=True)
    assert of_flags(root, minor, flags, values) == (True, [])
    assert rollout_report(node(root, minor), {"cpu_manager_reconcile_period": "5s"}, ChangeTerms())["starts"] is True


@pytest.mark.parametrize("minor", [33, 36])
def test_an_option_that_gets_one_value_with_commas(root: Path, minor: int) -> None:
    """Of the CPU manager's options, each flag gives one."""
    flags = "--cpu-manager-policy=static --reserved-cpus=0 --cpu-manager-policy-options=full-pcpus-only=true,a=b"
    text = 'new static policy error: bad value for option "full-pcpus-only": strconv.ParseBool: parsing "true,a=b":'
    starts, (refusal,) = of_flags(root, minor, flags)
    assert (starts, refusal.startswith(text)) == (False, True)
    empty = "--cpu-manager-policy-options="
    assert of_flags(root, minor, empty)[1] == [
        'invalid argument "" for "--cpu-manager-policy-options" flag: malformed pair, expect string=string'
    ]


@pytest.mark.parametrize("key", ["true", "yes", "off"])
def test_a_gate_whose_name_is_a_boolean(root: Path, key: str) -> None:
    values = "featureGates: {%s: true}\n" % key
    said = "false" if key == "off" else "true"
    assert of_flags(root, 33, "", values) == (False, ["unrecognized feature gate: " + said])
    assert of_flags(root, 36, "", values) == (True, [])


@pytest.mark.parametrize("option", ["align-by-socket", "distribute-cpus-across-cores"])
def test_without_a_reservation_the_options_are_not_read(root: Path, option: str) -> None:
    values = "cpuManagerPolicy: static\ncpuManagerPolicyOptions: {%s: 'true'}\n" % option
    without = "[cpumanager] unable to determine reserved CPU resources for static policy"
    level = (
        'new static policy error: CPU Manager Policy Alpha-level Options not enabled, but option "%s" provided' % option
    )
    assert of_flags(root, 33, "", values)[1] == [without, level]
    assert of_flags(root, 33, "--reserved-cpus=0", values)[1] == [level]
    # Too many CPUs are found by the policy itself, behind its options.
    assert of_flags(root, 33, "--kube-reserved=cpu=9", values)[1][0] != without


@pytest.mark.parametrize("minor", [33, 36])
@pytest.mark.parametrize("provider", ["aws", "gce"])
def test_a_cloud_provider_that_is_gone(root: Path, minor: int, provider: str) -> None:
    starts, (text,) = of_flags(root, minor, "--cloud-provider=" + provider)
    assert starts is False
    assert text.startswith('cloud provider "%s" was specified, but built-in cloud providers are disabled' % provider)


# --- an environment file that is not there ----------------------------------------------------------------------

UNIT = "[Service]\nEnvironmentFile=%s\nExecStart=/usr/bin/kubelet --config=/" + CONFIG + " $ARGS\n"
MORE = "etc/systemd/system/kubelet.service.d/10-more.conf"


@pytest.mark.parametrize(
    ("named", "more"),
    [
        ("-/etc/default/kubelet", ""),
        ("/etc/there", ""),
        ("/etc/kubelet.d/*.env", ""),
        # Taken back by a drop-in file.
        ("/etc/gone", "[Service]\nEnvironmentFile=\nEnvironmentFile=-/etc/gone\n"),
    ],
)
def test_environment_files_that_need_not_be_there(root: Path, named: str, more: str) -> None:
    write(root, "etc/there", "ARGS=\n")
    write(root, "etc/systemd/system/kubelet.service", UNIT % named)
    write(root, MORE, more)
    assert told(root) == (True, [])


def test_without_its_environment_file_systemd_does_not_start_the_kubelet(root: Path) -> None:
    write(root, "etc/systemd/system/kubelet.service", UNIT % "-/etc/default/kubelet")
    write(root, MORE, "[Service]\nEnvironmentFile=/etc/%p.env\n")
    starts, (finding,) = told(root)
    assert starts is False
    assert finding == {
        "text": "Failed to load environment files: No such file or directory",
        "cause": (
            "systemd does not start the service: /%s needs the EnvironmentFile /etc/kubelet.env, which is not there"
            % MORE
        ),
        "remedy": "write the file, or put a - before its path if it need not be there",
        "fatal": True,
        "where": "/" + MORE,
        "context": "kubelet.service: ",
    }
    plan = rollout_report(node(root, 33), {"cpu_manager_reconcile_period": "5s"}, ChangeTerms())
    assert [refusal["where"] for refusal in plan["refusals"]] == ["/" + MORE]
    # It comes before whatever the kubelet would refuse.
    write(root, CONFIG, HEADER + "cpuManagerPolicy: 5\n")
    assert [text["where"] for text in told(root)[1]] == ["/" + MORE, "cpuManagerPolicy"]
    write(root, "etc/kubelet.env", "")
    assert [text["where"] for text in told(root)[1]] == ["cpuManagerPolicy"]


# --- where to mend what is refused ------------------------------------------------------------------------------


def test_quotes_that_are_a_part_of_a_value_are_named(root: Path) -> None:
    (root / CONFIG).unlink()
    (root / "var/lib/rancher/rke2/agent").mkdir(parents=True)
    place = "etc/rancher/rke2/config.yaml"
    write(root, place, 'kubelet-arg:\n- cpu-manager-policy="static"\n- kube-reserved="cpu=500m"\n')
    starts, findings = told(root)
    assert starts is False
    for finding, flag in zip(findings, ('--kube-reserved="cpu=500m"', '--cpu-manager-policy="static"')):
        assert "the quotes in %s are a part of the value" % flag in finding["cause"]
        remedy = "write it without these quotes; %s is in %s" % (flag.partition("=")[0], root / place)
        assert finding["remedy"] == remedy
    write(root, place, "kubelet-arg:\n- cpu-manager-policy=static\n- 'kube-reserved=cpu=500m'\n")
    assert told(root)[0] is True


def test_a_flag_that_older_versions_may_not_have_is_named_with_its_file(root: Path) -> None:
    (root / "var/lib/rancher/rke2/agent").mkdir(parents=True)
    (root / CONFIG).unlink()
    write(root, "etc/rancher/rke2/config.yaml", "kubelet-arg:\n- cpu-manager=true\n")
    (doubt,) = start_report(node(root, 24), {})["unknown"]
    assert doubt["reason"].endswith("flag --cpu-manager; it is in %s" % (root / "etc/rancher/rke2/config.yaml"))
    starts, (finding,) = told(root)
    assert (starts, finding["text"]) == (False, "unknown flag: --cpu-manager")


ENFORCED = "--enforce-node-allocatable=pods,kube-reserved --kube-reserved=cpu=1"


@pytest.mark.parametrize(
    "flags", [ENFORCED, "--feature-gates=NoSuch=true", "--reserved-cpus=0-99", "--topology-manager-policy=best"]
)
def test_the_file_is_named_that_gives_a_flag_whose_value_is_refused(root: Path, flags: str) -> None:
    write(root, "var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="%s"\n' % flags)
    finding = next(finding for finding in told(root)[1] if finding["fatal"])
    assert "is in %s, and nodeRegistration" % (root / "var/lib/kubelet/kubeadm-flags.env") in finding["remedy"]


@pytest.mark.parametrize(
    ("os_id", "path", "place"),
    [
        ("talos", "etc/kubernetes/kubelet.yaml", "machine.kubelet.extraConfig"),
        ("bottlerocket", "etc/kubernetes/kubelet/config", "settings.kubernetes"),
        ("", "etc/kubernetes/kubelet-config.yaml", "its inventory"),
    ],
)
def test_who_writes_a_file_is_named_beside_a_refusal(root: Path, os_id: str, path: str, place: str) -> None:
    (root / CONFIG).unlink()
    write(root, "etc/os-release", "ID=%s\n" % os_id)
    gate = "featureGates: {UserNamespacesPodSecurityStandards: true}\n"
    write(root, path, HEADER + gate)
    assert told(root, 34)[0] is True
    starts, (finding,) = told(root, 35)
    assert (starts, place in finding["remedy"]) == (False, True)


def test_a_policy_that_was_lost_may_be_set_again(root: Path) -> None:
    """As after an upgrade that wrote the file anew."""
    write(root, CONFIG, HEADER)
    again = "or set cpuManagerPolicy: static again"
    write(root, CHECKPOINT, state("0,2-4,6-7", c="1,5"))
    assert again in told(root)[1][-1]["remedy"]
    # Who writes the configuration is named.
    unit = "[Service]\nExecStart=/opt/bin/kubelet --config=/var/lib/kubelet/config/kubelet\n"
    write(root, "etc/systemd/system/kubelet.service", unit)
    (root / CONFIG).unlink()
    write(root, "var/lib/kubelet/config/kubelet", HEADER)
    assert "give the shoot the same" in told(root)[1][-1]["remedy"]
    # Where nobody has CPUs, the file can go.
    write(root, CHECKPOINT, state("0-7"))
    assert again not in told(root)[1][-1]["remedy"]


@pytest.mark.parametrize(("gates", "starts"), [("KubeletCredentialProviders", None), ("CPUManager", True)])
def test_a_gate_of_which_older_versions_are_not_known_is_not_taken_for_known(
    root: Path, gates: str, starts: bool | None
) -> None:
    write(root, "etc/sysconfig/kubelet", "KUBELET_EXTRA_ARGS=--feature-gates=%s=true\n" % gates)
    answer = start_report(node(root, 28), {})
    assert answer["starts"] is starts
    assert [doubt["where"] for doubt in answer["unknown"]] == ([] if starts else ["featureGates." + gates])


@pytest.mark.parametrize(
    ("flag", "file", "is_harmful"),
    [("0s", "10s", True), ("0", "10s", True), ("5s", "0s", False), ("", "0s", False)],
)
def test_a_flag_with_a_period_of_0_does_harm(root: Path, flag: str, file: str, is_harmful: bool) -> None:
    """In a file, 0 means the default."""
    write(
        root,
        CONFIG,
        HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\ncpuManagerReconcilePeriod: %s\n" % file,
    )
    write(root, "etc/default/kubelet", "KUBELET_EXTRA_ARGS=%s\n" % (flag and "--cpu-manager-reconcile-period=" + flag))
    starts, findings = told(root)
    assert starts is True
    assert ("cpuManagerReconcilePeriod" in [finding["where"] for finding in findings]) is is_harmful


# --- what the unit gives the kubelet ----------------------------------------------------------------------------

KUBELET_UNIT = "etc/systemd/system/kubelet.service"
SIZING = "--system-reserved=cpu=${CPU},ephemeral-storage=${ES}"


def test_a_variable_that_nothing_sets_is_named_beside_the_empty_amount(root: Path) -> None:
    """As of OpenShift's unit, whose kubelet another program starts."""
    (root / CONFIG).unlink()
    write(root, "etc/os-release", "ID=rhcos\n")
    write(root, "etc/kubernetes/kubelet.conf", HEADER + "cpuManagerPolicy: static\n")
    write(root, "etc/node-sizing.env", "CPU=200m\n")
    line = "ExecStart=/usr/bin/hyperkube kubelet --config=/etc/kubernetes/kubelet.conf %s\n" % SIZING
    write(root, KUBELET_UNIT, "[Service]\nEnvironmentFile=/etc/node-sizing.env\n" + line)
    starts, findings = told(root)
    (refusal,) = [finding for finding in findings if finding["fatal"]]
    assert starts is False
    assert refusal["where"] == "systemReserved.ephemeral-storage"
    assert refusal["cause"].endswith("no file sets ES in it")
    assert str(root / KUBELET_UNIT) in refusal["remedy"]
    write(root, "etc/node-sizing.env", "CPU=200m\nES=1Gi\n")
    assert [finding for finding in told(root)[1] if finding["fatal"]] == []


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("ExecStart=/usr/bin/kubelet $CONFIG $ARGS", False),
        ("Environment=CONFIG=--config=/%s\nExecStart=/usr/bin/kubelet $CONFIG $ARGS" % CONFIG, True),
        ("ExecStart=/usr/bin/kubelet --config /%s" % CONFIG, True),
        # What another program starts it with is not known.
        ("ExecStart=/opt/start-kubelet", True),
    ],
)
def test_a_file_that_the_unit_does_not_name_does_not_count(root: Path, line: str, counts: bool) -> None:
    """As after an edit that took the line with --config away: the kubelet has its defaults."""
    write(root, KUBELET_UNIT, "[Service]\n%s\n" % line)
    write(root, CHECKPOINT, state("0-7"))
    answer = start_report(node(root, 33), {})
    assert answer["starts"] is counts
    note = "%s does not count: the kubelet's command line has no --config (/usr/bin/kubelet)" % (root / CONFIG)
    assert (note in answer["notes"]) is not counts
    wanted = {"cpu_manager_policy": "static", "reserved_system_cpus": "0-1"}
    plan = rollout_report(node(root, 33), wanted, ChangeTerms())
    refused = [refusal["text"] for refusal in plan["refusals"] if "without a configuration file" in refusal["text"]]
    assert bool(refused) is not counts


@pytest.mark.parametrize("mark", ["etc/kubernetes/ssl/kubecfg-kube-node.yaml", "etc/microshift/config.yaml"])
def test_of_a_kubelet_whose_flags_are_in_no_file_it_is_not_said_that_it_starts(root: Path, mark: str) -> None:
    (root / CONFIG).unlink()
    write(root, mark, "{}\n")
    with pytest.raises(NodeError, match="is in no file of the node, and none runs"):
        told(root)
    words = ["kubelet", "--kubeconfig=/etc/kubernetes/ssl/kubecfg-kube-node.yaml", "--cpu-manager-policy=static"]
    write(root, "proc/7/cmdline", "\0".join(words) + "\0")
    assert told(root)[0] is False


def test_a_container_that_a_unit_called_kubelet_starts_is_not_taken_for_no_kubelet(root: Path) -> None:
    (root / CONFIG).unlink()
    write(root, KUBELET_UNIT, "[Service]\nExecStartPre=docker run -d image kubelet\nExecStart=docker logs -f kubelet\n")
    with pytest.raises(NodeError, match=r"kubelet\.service starts a kubelet by another program \(docker\)") as raised:
        told(root)
    assert raised.value.kind == "no_configuration"


def test_no_rollout_writes_what_the_unit_writes_anew(root: Path) -> None:
    write(root, "opt/make.sh", "#!/bin/bash\ncat <<EOF >/%s\n%sEOF\n" % (CONFIG, HEADER))
    unit = "[Service]\nExecStartPre=/opt/make.sh\nExecStart=/usr/bin/kubelet --config=/%s\n" % CONFIG
    write(root, KUBELET_UNIT, unit)
    wanted = {"cpu_manager_policy": "static", "reserved_system_cpus": "0-1"}
    plan = rollout_report(node(root, 33), wanted, ChangeTerms())
    (refusal,) = plan["refusals"]
    assert refusal["text"].startswith("ExecStartPre in %s writes this file anew" % (root / KUBELET_UNIT))
    write(root, "opt/make.sh", "#!/bin/bash\nmkdir -p /etc/kubernetes/manifests\n")
    assert rollout_report(node(root, 33), wanted, ChangeTerms())["refusals"] == []


DROP_IN = KUBELET_UNIT + ".d/20-cloud.conf"
STATIC_FLAGS = "--cpu-manager-policy=static --kube-reserved=cpu=500m"


@pytest.mark.parametrize(
    ("path", "text", "lost"),
    [
        # An environment file counts before all drop-ins, also where its value is empty.
        ("etc/default/kubelet", "ARGS=\n", "--cpu-manager-policy, --kube-reserved there do"),
        ("etc/default/kubelet", "ARGS=--kube-reserved=cpu=1\n", "--cpu-manager-policy there does"),
        (
            KUBELET_UNIT + ".d/30-more.conf",
            "[Service]\nEnvironment=ARGS=--v=2\n",
            "--cpu-manager-policy, --kube-reserved there do",
        ),
        # These take nothing away.
        ("etc/default/kubelet", "OTHER=\n", ""),
        ("etc/default/kubelet", "ARGS=%s --v=2\n" % STATIC_FLAGS, ""),
        (KUBELET_UNIT + ".d/30-more.conf", "[Service]\nEnvironment=\nEnvironment=ARGS=--v=2\n", ""),
    ],
)
def test_flags_that_another_file_takes_the_place_of_are_named(root: Path, path: str, text: str, lost: str) -> None:
    line = "ExecStart=/usr/bin/kubelet --config=/%s $ARGS\n" % CONFIG
    write(root, KUBELET_UNIT, "[Service]\nEnvironmentFile=-/etc/default/kubelet\n" + line)
    write(root, DROP_IN, '[Service]\nEnvironment="ARGS=%s"\n' % STATIC_FLAGS)
    write(root, path, text)
    notes = [note for note in start_report(node(root, 33), {})["notes"] if "takes the place" in note]
    begin = "%s: its ARGS takes the place of that of %s, so that %s" % (root / path, root / DROP_IN, lost)
    assert [note.startswith(begin) for note in notes] == ([True] if lost else [])


# --- a vendor's kubelet --------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", [state("1-3,5-7"), state("1-2,5-6", db="3,7", dns="0,4", proxy="0,4")])
def test_the_kubelet_of_starlingx_is_not_judged_by_the_rules_of_others(root: Path, checkpoint: bytes) -> None:
    """Its shared pool never has the reserved CPUs, which it gives to several pods of the platform."""
    write(root, CONFIG, HEADER + "cgroupDriver: systemd\ncpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n")
    write(root, CHECKPOINT, checkpoint)
    assert told(root)[0] is False
    assert [row["subject"] for row in drift_of(root, {})["drift"]] == ["checkpoint"]
    write(root, "etc/platform/platform.conf", "nodetype=worker\n")
    answer = start_report(node(root, 33), {})
    assert answer["starts"] is None
    assert "by rules of its vendor's" in answer["unknown"][0]["reason"]
    drift = drift_of(root, {})
    assert (drift["drift"], drift["actions"]) == ([], [])
    assert any("by rules of its vendor's" in note for note in drift["notes"])
    elsewhere = rollout_report(node(root, 33), {"cpu_manager_policy": "none"}, ChangeTerms())["elsewhere"]
    assert elsewhere["name"] == "StarlingX"


# --- amounts that are there, and are nothing -------------------------------------------------------------------


@pytest.mark.parametrize("fields", ["kubeReserved: {cpu: 0m}", "systemReserved: {cpu: '0'}\nkubeReserved: {cpu: '0'}"])
def test_a_reservation_of_0_is_named_where_nothing_is_reserved(root: Path, fields: str) -> None:
    write(root, CONFIG, HEADER + "cgroupDriver: systemd\ncpuManagerPolicy: static\n" + fields + "\n")
    starts, (finding,) = told(root)
    assert starts is False
    assert finding["cause"].endswith(
        "the cpu in %s is 0" % (" and ".join(line.split(":")[0] for line in fields.split("\n")))
    )


def test_the_file_with_a_reservation_of_0_is_named(root: Path) -> None:
    write_eks(root, "--system-reserved=cpu=0m", kubeReserved={})
    starts, (finding,) = told(root)
    assert starts is False
    assert finding["remedy"].endswith("--system-reserved is in %s%s" % (root, EKS_DROP_IN))


# --- a node in a container that does not hand its controllers on -----------------------------------------------


def test_pods_below_a_cgroup_with_threads_are_in_an_invalid_state(root: Path) -> None:
    write(root, CONFIG, HEADER + "cgroupDriver: cgroupfs\n")
    for path, name, text in (
        ("", "controllers", "cpuset cpu memory pids\n"),
        ("", "type", "domain threaded\n"),
        ("kubepods/", "controllers", "\n"),
    ):
        write(root, "sys/fs/cgroup/%scgroup.%s" % (path, name), text)
    for kind, words in (("domain invalid", "it is in an invalid state"), ("domain", "real-time priority")):
        write(root, "sys/fs/cgroup/kubepods/cgroup.type", kind + "\n")
        answer = start_report(node(root, 33), {})
        assert answer["starts"] is None
        assert words in answer["unknown"][0]["reason"]


# --- a file that a snap's variable names -----------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["${SNAP_DATA}", "$SNAP_DATA"])
def test_microk8s_reads_the_file_that_its_arguments_name(root: Path, variable: str) -> None:
    (root / CONFIG).unlink()
    arguments = "var/snap/microk8s/current/args/kubelet"
    write(root, arguments, "--config %s/args/kubelet.conf\n--root-dir=${SNAP_COMMON}/var/lib/kubelet\n" % variable)
    write(root, arguments + ".conf", HEADER + "cpuManagerPolicy: static\n")
    starts, (finding,) = told(root)
    assert (starts, finding["where"]) == (False, "reservedSystemCPUs")
    write(root, arguments + ".conf", HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n")
    assert told(root) == (True, [])


@pytest.mark.parametrize("lacking", [("memory",), ("cpuset", "memory"), ()])
def test_a_controller_that_no_hierarchy_of_v1_has_is_a_refusal(root: Path, lacking: tuple[str, ...]) -> None:
    """As on a Raspberry Pi, whose kernel has the controller memory off."""
    write(root, CONFIG, HEADER + "cgroupDriver: cgroupfs\nfailCgroupV1: false\n")
    write_cgroups(root, V1, {"system.slice": Files()}, "0-7", "0")
    mounts = (root / "proc/mounts").read_text("utf-8").splitlines(keepends=True)
    write(root, "proc/mounts", "".join(line for line in mounts if not any("," + name in line for name in lacking)))
    starts, findings = told(root)
    assert starts is not bool(lacking)
    text = "system validation failed - Following Cgroup subsystem not mounted: [%s]" % " ".join(lacking)
    assert [finding["text"] for finding in findings] == [text] * bool(lacking)


@pytest.mark.parametrize(
    ("minor", "more", "starts"),
    [
        (20, "", False),
        (21, "", False),
        (22, "failCgroupV1: false\n", None),
        (21, "cgroupsPerQOS: false\nenforceNodeAllocatable: []\n", True),
    ],
)
def test_a_kernel_without_the_controller_pids_starts_no_kubelet(
    root: Path, minor: int, more: str, starts: bool | None
) -> None:
    """As of a node in a container on a host with kernel 3.10."""
    write(root, CONFIG, HEADER + "cgroupDriver: cgroupfs\n" + more)
    write_cgroups(root, V1, {"system.slice": Files()}, "0-7", "0")
    mounts = (root / "proc/mounts").read_text("utf-8").splitlines(keepends=True)
    write(root, "proc/mounts", "".join(line for line in mounts if ",pids" not in line))
    answer = start_report(node(root, minor), {})
    assert answer["starts"] is starts
    texts = [finding["text"] for finding in answer["findings"] if finding["fatal"]]
    assert texts == ["failed to find subsystem mount for required subsystem: pids"] * (starts is False)
    assert ["pids" in doubt["reason"] for doubt in answer["unknown"]] == [True] * (starts is None)


def test_a_slice_of_the_kubelets_own_is_in_no_hierarchy_of_cpusets(root: Path) -> None:
    reserved = "kubeReservedCgroup: /runtime\nkubeReserved: {cpu: 70m}\nenforceNodeAllocatable: [pods, kube-reserved]\n"
    write(root, CONFIG, HEADER + "cgroupDriver: systemd\n" + reserved)
    write(
        root,
        "etc/systemd/system/kubelet.service",
        "[Service]\nSlice=runtime.slice\nExecStart=/usr/bin/kubelet --config=/%s\n" % CONFIG,
    )
    write_cgroups(root, V1, {"system.slice": Files()}, "0-7", "0")
    for hierarchy in ("cpu", "memory", "pids", "systemd"):
        (root / "sys/fs/cgroup" / hierarchy / "runtime.slice").mkdir(parents=True)
    answer = start_report(node(root, 21), {})
    (finding,) = [finding for finding in answer["findings"] if finding["fatal"]]
    assert answer["starts"] is False
    assert finding["text"].startswith('Failed to enforce Kube Reserved Cgroup Limits on "/runtime": ')
    assert "is not in /sys/fs/cgroup/cpuset" in finding["cause"]


@pytest.mark.parametrize(
    ("own", "flags", "docker", "minor", "refused"),
    [
        ("cgroupfs", "", "systemd", 20, True),
        ("systemd", "--container-runtime=docker", "cgroupfs", 23, True),
        ("cgroupfs", "--cgroup-driver=systemd", "systemd", 20, False),
        ("systemd", "--cgroup-driver=cgroupfs", "systemd", 20, True),
        (
            "cgroupfs",
            "--container-runtime=remote --container-runtime-endpoint=unix:///run/x.sock",
            "systemd",
            20,
            False,
        ),
        ("cgroupfs", "", "systemd", 24, False),
    ],
)
def test_a_dockershim_refuses_another_driver_than_dockers(
    root: Path, own: str, flags: str, docker: str, minor: int, refused: bool
) -> None:
    write(root, CONFIG, HEADER + "cgroupDriver: %s\n" % own)
    write(root, "var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="%s"\n' % flags)
    write(root, "etc/docker/daemon.json", '{"exec-opts": ["native.cgroupdriver=%s"]}\n' % docker)
    answer = start_report(node(root, minor), {})
    texts = [finding["text"] for finding in answer["findings"] if finding["fatal"]]
    assert (answer["starts"] is False, any(text.startswith("misconfiguration: ") for text in texts)) == (
        refused,
        refused,
    )
