# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import time
from typing import Any, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flags import FLAGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.command_line import (
    apply_flags,
    check_command,
    check_creation,
    check_run,
    read_command,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import (
    Finding,
    StartError,
    UnpredictableError,
    refused,
)

PARSING = "failed to parse kubelet flag: "


def takes_all(gates: Mapping[str, bool]) -> None:
    return None


def read(*arguments: str) -> dict[str, Any]:
    return read_command(arguments, 36).values


def refusal_of(arguments: list[str], minor: int = 36) -> StartError:
    with pytest.raises(StartError) as error:
        read_command(arguments, minor)
    return error.value


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ([], {}),
        (["--cpu-manager-policy=static"], {"cpu-manager-policy": "static"}),
        (["--cpu-manager-policy", "static"], {"cpu-manager-policy": "static"}),
        (["--cpu_manager_policy=static"], {"cpu-manager-policy": "static"}),
        (["--cpu-manager-policy", "--v=2"], {"cpu-manager-policy": "--v=2"}),  # what follows, whatever it is
        (["--reserved-cpus=0", "--reserved-cpus=1"], {"reserved-cpus": "1"}),
        (["--reserved-cpus="], {"reserved-cpus": ""}),
        (["--cpu-cfs-quota"], {"cpu-cfs-quota": True}),
        (["--cpu-cfs-quota=F"], {"cpu-cfs-quota": False}),
        (["--kube-reserved=cpu=1", "--kube-reserved=pid=5"], {"kube-reserved": {"cpu": "1", "pid": "5"}}),
        (
            ["--enforce-node-allocatable=pods", "--enforce-node-allocatable=none"],
            {"enforce-node-allocatable": ["pods", "none"]},
        ),
        (["-v=5"], {"v": 5}),
        (["-v5"], {"v": 5}),
        (["-v", "5"], {"v": 5}),
        (["-v=2", "--v=3"], {"v": 3}),
        (["-test.v", "-test.x=y"], {}),  # meant for Go's tests
        (["--v=2", "--"], {"v": 2}),
        (["--version=false", "--help=false"], {"version": "false", "help": False}),
        (["--reserved-memory="], {}),  # no effect
        (["--address=10.0.0.1", "--address="], {"address": "10.0.0.1"}),
        (["--node-labels=a=b", "--node-labels=c"], {"node-labels": {"a": "b", "c": ""}}),
        (
            ["--storage-driver-secure", "--housekeeping-interval=1s"],
            {"storage-driver-secure": True, "housekeeping-interval": 10**9},
        ),
    ],
)
def test_that_flags_are_read(arguments: list[str], values: dict[str, Any]) -> None:
    assert read(*arguments) == values


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--unknown-flag=1"], "unknown flag: --unknown-flag"),
        (["--unknown_flag"], "unknown flag: --unknown_flag"),
        (["--CPU-manager-policy=x"], "unknown flag: --CPU-manager-policy"),
        (["--container-runtime=remote"], "unknown flag: --container-runtime"),
        (["--pod-infra-container-image=x"], "unknown flag: --pod-infra-container-image"),
        (["---v"], "bad flag syntax: ---v"),
        (["--=1"], "bad flag syntax: --=1"),
        (["-cpu-manager-policy=foo"], "unknown shorthand flag: 'c' in -cpu-manager-policy=foo"),
        (["-h="], "unknown shorthand flag: '=' in -="),
        (["-'"], "unknown shorthand flag: '\\'' in -'"),
        (['-"'], "unknown shorthand flag: '\"' in -\""),
        (["-\n"], "unknown shorthand flag: '\\n' in -\n"),
        (["-é"], "unknown shorthand flag: 'Ã' in -é"),  # the first byte
        (["--reserved-cpus"], "flag needs an argument: --reserved-cpus"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["-hv"], "flag needs an argument: 'v' in -v"),
        (["--v=x"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax'),
        (["-v="], 'invalid argument "=" for "-v, --v" flag: strconv.ParseUint: parsing "=": invalid syntax'),
        (["-vh"], 'invalid argument "h" for "-v, --v" flag: strconv.ParseUint: parsing "h": invalid syntax'),
        (["--help=x"], 'invalid argument "x" for "-h, --help" flag: strconv.ParseBool: parsing "x": invalid syntax'),
        (
            ["--kube_reserved=cpu"],
            'invalid argument "cpu" for "--kube-reserved" flag: malformed pair, expect string=string',
        ),
        (
            ["--healthz-port=abc"],
            'invalid argument "abc" for "--healthz-port" flag: strconv.ParseInt: parsing "abc": invalid syntax',
        ),
        (
            ["--cpu-manager-reconcile-period=5"],
            'invalid argument "5" for "--cpu-manager-reconcile-period" flag: time: missing unit in duration "5"',
        ),
        (
            ["--reserved-memory=", "--reserved-memory="],
            'invalid argument "" for "--reserved-memory" flag: no target (nil pointer to *[]MemoryReservation',
        ),
        (["false", "--foo"], "unknown flag: --foo"),  # flags come first
        (["--help", "--foo"], "unknown flag: --foo"),
    ],
)
def test_that_flags_are_refused(arguments: list[str], text: str) -> None:
    refusal = refusal_of(arguments)
    assert (refusal.context, refusal.text) == (PARSING, text)


@pytest.mark.parametrize(
    ("arguments", "minor", "cause", "remedy", "where"),
    [
        (["--foo"], 36, "the kubelet 1.36 has no such flag", "check how it is spelled, or remove it", "--foo"),
        (["--register_schedulable"], 36, "Kubernetes 1.34 removed this flag", "remove it", "--register_schedulable"),
        (["--network-plugin=cni"], 36, "Kubernetes 1.24 removed this flag", "remove it", "--network-plugin"),
        (
            ["--fail-cgroupv1"],
            30,
            "the flag exists from Kubernetes 1.31 on, and this is 1.30",
            "remove it, or upgrade",
            "--fail-cgroupv1",
        ),
        (["--V=2"], 36, "the kubelet has no such flag; upper and lower case count", "write --v", "--V"),
        (["--max-pods=x"], 36, "the flag takes a whole number", "correct its value", "--max-pods"),
        (["--max-pods"], 36, "the flag takes a value, and none follows", "give it a value", "--max-pods"),
    ],
)
def test_causes_of_refusals(arguments: list[str], minor: int, cause: str, remedy: str, where: str) -> None:
    refusal = refusal_of(arguments, minor)
    assert (refusal.cause, refusal.remedy, refusal.where) == (cause, remedy, where)


@pytest.mark.parametrize(
    ("arguments", "text", "where"),
    [
        (["--cpu-cfs-quota", "false", "x"], "unknown command false", "false"),
        (["static"], "unknown command static", "static"),
        (["-"], "unknown command -", "-"),
        ([""], "unknown command ", ""),
        (["--", "--v=2"], "unknown command --v=2", "--v=2"),
        (["x", "--help"], "unknown command x", "x"),
        (["--help", "--version"], 'The kubelet is the primary "node agent" that runs on each', "--help"),
        (["-h"], 'The kubelet is the primary "node agent" that runs on each', "--help"),
        (["--version"], "Kubernetes v1.36", "--version"),
        (["--version=raw"], "Kubernetes v1.36", "--version"),
    ],
)
def test_that_the_kubelet_does_not_go_on(arguments: list[str], text: str, where: str) -> None:
    refusal = refusal_of(arguments)
    assert (refusal.context, refusal.text, refusal.where) == ("", text, where)


def test_an_address_behind_an_empty_one() -> None:
    refusal = refusal_of(["--address=", "--address=", "--address=::"])
    assert (refusal.context, refusal.text) == ("panic: ", "the string pointer passed into IPVar should not be nil")
    assert refusal_of(["--address=", "--address=x"]).text.endswith('flag: "x" is not a valid IP address')


def test_a_version_that_is_given() -> None:
    with pytest.raises(UnpredictableError, match="a version that is given has to be that of the kubelet"):
        read_command(["--version=v1.36.3"], 36)


def test_the_command() -> None:
    command = read_command(["--config=/a", "--config-dir=/b", "--root-dir=/c", "--feature-gates=A=true"], 36)
    assert command[:3] == ("/a", "/b", {"A": True})
    assert command.values["root-dir"] == "/c"
    assert command.reads_files()
    command = read_command([], 36)
    assert command[:3] == ("", "", {})
    assert not command.reads_files()


VALUES = {
    "cpuManagerPolicy": "static",
    "kubeReserved": {"cpu": "1"},
    "featureGates": {"A": True, "B": True},
    "enforceNodeAllocatable": ["pods"],
    "logging": {"format": "text", "vmodule": [{"filePattern": "a", "verbosity": 1}]},
}


@pytest.mark.parametrize("files", [[], ["--config=/x"], ["--config-dir=/x"]])
@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ([], {}),
        (["--cpu-manager-policy="], {"cpuManagerPolicy": ""}),
        (["--kube-reserved=memory=1Gi"], {"kubeReserved": {"memory": "1Gi"}}),
        (["--kube-reserved="], {"kubeReserved": {}}),
        (["--enforce-node-allocatable="], {"enforceNodeAllocatable": []}),
        (["--feature-gates=B=false,C=true"], {"featureGates": {"A": True, "B": False, "C": True}}),
        (["--feature-gates="], {"featureGates": {"A": True, "B": True}}),
        (["--cpu-cfs-quota=false"], {"cpuCFSQuota": False}),
        (["--max-pods=0"], {"maxPods": 0}),
        (["--cpu-manager-reconcile-period=0"], {"cpuManagerReconcilePeriod": 0}),
        (["--register-with-taints="], {"registerWithTaints": []}),
        (["--healthz-bind-address="], {}),
        (["--anonymous-auth=false"], {"authentication": {"anonymous": {"enabled": False}}}),
        (
            ["--vmodule=b=2", "--v=3"],
            {
                "logging": {
                    "format": "text",
                    "vmodule": [{"filePattern": "a", "verbosity": 1}, {"filePattern": "b", "verbosity": 2}],
                    "verbosity": 3,
                }
            },
        ),
        (["--node-ip=::"], {}),  # no field
    ],
)
def test_that_flags_are_applied(files: list[str], arguments: list[str], changed: dict[str, Any]) -> None:
    before = repr(VALUES)
    assert apply_flags(read_command([*files, *arguments], 36), VALUES) == {**VALUES, **changed}
    assert repr(VALUES) == before


@pytest.mark.parametrize("values", [{}, {"logging": None, "featureGates": None}, {"logging": {"vmodule": None}}])
def test_fields_that_are_not_there(values: dict[str, Any]) -> None:
    found = apply_flags(read_command(["--feature-gates=A=true", "--vmodule=a=1"], 36), values)
    assert found == {"featureGates": {"A": True}, "logging": {"vmodule": [{"filePattern": "a", "verbosity": 1}]}}


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        (["--cpu-manager-policy=static"], "static"),  # without files, they are read once
        (["--config=/x", "--cpu-manager-policy=static"], "static"),
        (["--config=/x", "--log-cadvisor-usage", "--cpu-manager-policy=static"], None),  # its value, the second time
        (["--config=/x", "--log-cadvisor-usage=true", "--cpu-manager-policy=static"], "static"),
        (["--config=/x", "--cpu-manager-policy=static", "--version=false"], "static"),
    ],
)
def test_that_flags_are_read_again(arguments: list[str], policy: str | None) -> None:
    assert apply_flags(read_command(arguments, 36), {}).get("cpuManagerPolicy") == policy


@pytest.mark.parametrize(
    ("arguments", "text", "where"),
    [
        (["--log-cadvisor-usage"], "flag needs an argument: --log-cadvisor-usage", "--log-cadvisor-usage"),
        (["--help=false"], "pflag: help requested", "--help"),
        (["-h=false"], "pflag: help requested", "--help"),
    ],
)
def test_that_flags_are_refused_the_second_time(arguments: list[str], text: str, where: str) -> None:
    assert apply_flags(read_command(arguments, 36), {}) == {}
    command = read_command(["--config=/x", *arguments], 36)
    with pytest.raises(StartError) as error:
        apply_flags(command, {})
    assert (error.value.context, error.value.text, error.value.where) == ("", text, where)


def test_gates() -> None:
    def refuse(gates: Mapping[str, bool]) -> Finding:
        return refused("unrecognized feature gate: %s" % "".join(gates), "the cause", "the remedy", "featureGates.Foo")

    command = read_command(["--feature-gates=Foo=true", "--node-labels=k8s.io/a=b"], 36)
    with pytest.raises(StartError) as error:
        check_command(command, 36, refuse)
    assert error.value.context == "failed to set feature gates from initial flags-based config: "
    assert error.value.text == "unrecognized feature gate: Foo"
    assert (error.value.cause, error.value.remedy) == ("the cause", "the remedy")
    assert error.value.where == "--feature-gates"
    check_command(read_command([], 36), 36, refuse)


def test_labels() -> None:
    command = read_command(["--node-labels=node-role.kubernetes.io/x=y"], 36)
    with pytest.raises(StartError) as error:
        check_command(command, 36, takes_all)
    assert error.value.context == "failed to validate kubelet flags: "
    assert error.value.text.startswith("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [node")
    check_command(read_command(["--node-labels=a=b"], 36), 36, takes_all)


@pytest.mark.parametrize(
    ("arguments", "minor", "text"),
    [
        (["--exit-on-lock-contention"], 36, "cannot exit on lock file contention: no lock file specified"),
        (["--cloud-provider=aws"], 30, 'unknown cloud provider "aws"'),
    ],
)
def test_what_is_refused_when_the_kubelet_runs(arguments: list[str], minor: int, text: str) -> None:
    with pytest.raises(StartError) as error:
        check_run(read_command(arguments, minor), minor)
    assert (error.value.context, error.value.text) == ("failed to run Kubelet: ", text)


@pytest.mark.parametrize(
    ("arguments", "minor"),
    [
        ([], 33),
        (["--exit-on-lock-contention", "--lock-file=/x"], 36),
        (["--cloud-provider=external"], 33),
        (["--cloud-provider="], 33),
        (["--cloud-provider=aws"], 33),
    ],
)
def test_what_is_not(arguments: list[str], minor: int) -> None:
    check_run(read_command(arguments, minor), minor)


@pytest.mark.parametrize("minor", [33, 36])
def test_cloud_providers(minor: int) -> None:
    with pytest.raises(StartError) as error:
        check_creation(read_command(["--cloud-provider=aws"], minor), minor)
    assert error.value.context == "failed to run Kubelet: failed to create kubelet: "
    assert error.value.text == (
        'cloud provider "aws" was specified, but built-in cloud providers are disabled.'
        " Please set --cloud-provider=external and migrate to an external cloud provider"
    )
    check_creation(read_command(["--cloud-provider=external"], minor), minor)


@pytest.mark.parametrize(
    ("provider", "last"), [("openstack", 25), ("aws", 26), ("azure", 28), ("gce", 28), ("vsphere", 28)]
)
def test_a_cloud_provider_that_an_older_kubelet_has_built_in_is_no_refusal(provider: str, last: int) -> None:
    arguments = ["--cloud-provider=" + provider]
    for minor in (20, last):
        check_run(read_command(arguments, minor), minor)
        check_creation(read_command(arguments, minor), minor)
    with pytest.raises(StartError, match="unknown cloud provider"):
        check_run(read_command(arguments, last + 1), last + 1)
    with pytest.raises(StartError, match="unknown cloud provider"):
        check_run(read_command(["--cloud-provider=mine"], 20), 20)


WORDS = st.one_of(
    st.text(st.characters(), max_size=8),
    st.builds("--{}={}".format, st.sampled_from(sorted(FLAGS)), st.text(st.characters(), max_size=8)),
    st.builds("--{}".format, st.sampled_from(sorted(FLAGS))),
    st.builds("-{}".format, st.text(max_size=4)),
)


@given(st.lists(WORDS, max_size=5), st.sampled_from([33, 36, 37]))
def test_that_any_words_are_read_or_refused(arguments: list[str], minor: int) -> None:
    with contextlib.suppress(StartError, UnpredictableError):
        command = read_command(arguments, minor)
        check_command(command, minor, takes_all)
        apply_flags(command, {"logging": 5, "featureGates": []})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kube-reserved=" + "a=b," * 20000],
        ["--kube-reserved=a%d=b" % number for number in range(10000)],
        ["--tls-cipher-suites=" + '"a",' * 10000 + "b"],
        ["-" + "h" * 50000],
        ["--node-labels=" + "a" * 100000 + "-=b"],
        ["--reserved-memory=" + "0:memory=1;" * 2000],
    ],
    ids=["pairs", "flags", "records", "letters", "label", "memory"],
)
def test_that_long_commands_take_no_longer(arguments: list[str]) -> None:
    start = time.process_time()
    with contextlib.suppress(StartError):
        check_command(read_command(arguments, 36), 36, takes_all)
    assert time.process_time() - start < 1


def test_flags_of_older_kubelets() -> None:
    old = ["--container-runtime=remote", "--network-plugin", "cni", "--logtostderr", "--log-dir=/var/log"]
    command = read_command([*old, "--cpu-manager-policy=static"], 20)
    assert apply_flags(command, {})["cpuManagerPolicy"] == "static"
    assert refusal_of(old, 24).text == "unknown flag: --network-plugin"
    assert refusal_of(old[:1], 27).cause == "Kubernetes 1.27 removed this flag"


def test_a_flag_that_an_older_kubelet_may_have() -> None:
    command = read_command(["--chaos-chance=0.1", "--cpu-manager-policy=static"], 28)
    assert [doubt.where for doubt in command.doubts] == ["--chaos-chance"]
    assert apply_flags(command, {}) == {"cpuManagerPolicy": "static"}
    # The next word could be its value.
    with pytest.raises(UnpredictableError) as caught:
        read_command(["--chaos-chance", "0.1"], 28)
    assert caught.value.where == "--chaos-chance"
    # Of these kubelets all flags are known.
    assert refusal_of(["--chaos-chance=0.1"], 29).text == "unknown flag: --chaos-chance"


def test_a_flag_that_another_version_has() -> None:
    command = read_command(["--container-runtime=remote", "--cpu-manager-policy=static"], 36, is_assumed=True)
    assert [doubt.where for doubt in command.doubts] == ["--container-runtime"]
    assert apply_flags(command, {}) == {"cpuManagerPolicy": "static"}
    with pytest.raises(StartError):
        read_command(["--cpu-manager-polcy=static"], 36, is_assumed=True)
