# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for the kubelet: what it reads, refuses, answers and writes, and how it ends."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree

from .certificates import Authority
from .control_plane import ControlPlane
from .kubelet.configuration import DEFAULTS, CommandLine, StartError, effective_configuration
from .kubelet.faults import DIES, HANGS, NO_RUNTIME, REFUSES, Fault
from .kubelet_node import CHECKPOINT, STARTED, KubeletNode, joining, wait_until
from .pods import Pods
from .ports import LOOPBACK
from .service import Service

STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4", "cpuManagerReconcilePeriod": "500ms"}
NONE = {"cpuManagerPolicy": "none"}
EMPTY = b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
POOL = b'{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}'

MakeKubelet = Callable[..., KubeletNode]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeKubelet]:
    """Yield a function that makes nodes of four cores with two threads each, and end their kubelets."""
    made: list[KubeletNode] = []

    def make_one(configuration: dict[str, Any], name: str = "worker", **keywords: Any) -> KubeletNode:
        made.append(KubeletNode(tmp_path / name, "1s4c2t", configuration, **keywords))
        return made[-1]

    yield make_one
    for node in made:
        node.stop()


def is_healthy(node: KubeletNode) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, node.configuration()["healthzPort"], timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().read() == b"ok"
    except OSError:
        return False
    finally:
        connection.close()


def ask(node: KubeletNode, path: str, pair: Path | None = None) -> tuple[int, str]:
    """Return the status and text that the kubelet's own port answers to the owner of a certificate or to anybody."""
    tls = ssl.create_default_context(cafile=node.root / "var/lib/kubelet/pki/kubelet.crt")
    tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if pair:
        tls.load_cert_chain(pair.with_suffix(".crt"), pair.with_suffix(".key"))
    connection = http.client.HTTPSConnection(LOOPBACK, node.configuration()["port"], timeout=30, context=tls)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8")
    finally:
        connection.close()


# --- what configures it -----------------------------------------------------------------------------------


def effective(root: Path, *flags: str) -> dict[str, Any]:
    return effective_configuration(Tree(str(root)), CommandLine.parse(flags))


def write(root: Path, path: str, **values: Any) -> None:
    here = Path("%s/%s" % (root, path))
    here.parent.mkdir(parents=True, exist_ok=True)
    header = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    here.write_text(yaml.safe_dump({**header, **values}), encoding="utf-8")


def test_without_anything_there_are_defaults(tmp_path: Path) -> None:
    assert {**effective(tmp_path), **DEFAULTS} == effective(tmp_path)


def test_flags_before_drop_ins_before_the_file(tmp_path: Path) -> None:
    options = {"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"}
    write(tmp_path, "/c.yaml", cpuManagerPolicy="none", topologyManagerScope="pod", cpuManagerPolicyOptions=options)
    write(tmp_path, "/d/20.conf", cpuManagerPolicy="static", kubeReserved={"cpu": "2"})
    write(tmp_path, "/d/10.conf", cpuManagerPolicy="none", kubeReserved={"cpu": "1", "memory": "1Gi"})
    write(tmp_path, "/d/deep/30.conf", cpuManagerPolicyOptions={"full-pcpus-only": None, "align-by-socket": "true"})
    write(tmp_path, "/d/40.yaml", cpuManagerPolicy="no drop-in")
    found = effective(tmp_path, "--config", "/c.yaml", "--config-dir=/d")
    assert found["cpuManagerPolicy"] == "static"
    assert found["topologyManagerScope"] == "pod"
    assert found["kubeReserved"] == {"cpu": "2", "memory": "1Gi"}
    assert found["cpuManagerPolicyOptions"] == {"distribute-cpus-across-numa": "true", "align-by-socket": "true"}
    flags = ("--cpu-manager-policy=none", "--kube-reserved=cpu=3,pid=9", "--feature-gates=A=true,B=false")
    found = effective(tmp_path, "--config=/c.yaml", "--config-dir=/d", *flags)
    assert found["cpuManagerPolicy"] == "none"
    assert found["kubeReserved"] == {"cpu": "3", "pid": "9"}
    assert found["featureGates"] == {"A": True, "B": False}


def test_an_option_per_flag(tmp_path: Path) -> None:
    whole_cores, two_signs = "--cpu-manager-policy-options=full-pcpus-only=true", "--cpu-manager-policy-options=a=b,c=d"
    assert effective(tmp_path, whole_cores, two_signs)["cpuManagerPolicyOptions"] == {
        "full-pcpus-only": "true",
        "a": "b,c=d",
    }


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--no-such-flag=1"], "unknown flag: --no-such-flag"),
        (["--config"], "flag needs an argument: --config"),
        (["--config=/none.yaml"], "failed to load kubelet config file, path: /none.yaml"),
        (["--config-dir=/none"], "failed to walk through kubelet dropin directory"),
    ],
)
def test_what_configures_nothing(tmp_path: Path, flags: Sequence[str], message: str) -> None:
    with pytest.raises(StartError, match=message):
        effective(tmp_path, *flags)


# --- its life ---------------------------------------------------------------------------------------------


def test_a_first_start(make: MakeKubelet) -> None:
    node = make(STATIC)
    node.start()
    node.wait_for(STARTED)
    assert node.read(CHECKPOINT) == POOL
    assert is_healthy(node)
    (process,) = (path for path in (node.root / "proc").iterdir() if path.is_dir())
    command_line = b"kubelet\0--config=/var/lib/kubelet/config.yaml\0--hostname-override=worker\0"
    assert (process / "cmdline").read_bytes() == command_line
    node.stop()
    starting = "[cpumanager] starting with static policy"
    assert node.log() == ["service: start", "Started kubelet", starting, STARTED, "service: end 0"]
    assert not is_healthy(node)
    assert not process.exists()
    assert node.read(CHECKPOINT) == POOL


def test_it_shows_its_configuration_to_whom_it_knows(make: MakeKubelet, tmp_path: Path) -> None:
    authority = Authority()
    authority.pair.write(tmp_path / "ca")
    authority.issue("admin").write(tmp_path / "admin")
    Authority().issue("stranger").write(tmp_path / "stranger")
    x509 = {"clientCAFile": "/etc/kubernetes/pki/ca.crt"}
    reserved = {"kubeReserved": {"cpu": "1", "memory": "1Gi"}, "systemReserved": {"memory": "1Gi"}}
    node = make({**STATIC, **reserved, "authentication": {"x509": x509}})
    node.write(x509["clientCAFile"], (tmp_path / "ca.crt").read_text(encoding="ascii"))
    node.start()
    node.wait_for("Started kubelet")
    status, text = ask(node, "/configz", tmp_path / "admin")
    assert status == 200
    shown = json.loads(text)["kubeletconfig"]
    assert shown["cpuManagerPolicy"] == "static"
    assert shown["topologyManagerPolicy"] == "none"
    # The kubelet changes what it was given: the CPUs by name count.
    assert (shown["kubeReserved"], shown["systemReserved"]) == ({"memory": "1Gi"}, {"memory": "1Gi", "cpu": "2"})
    assert ask(node, "/configz") == (401, "Unauthorized")
    # The connection may be closed before the reason has been read.
    with pytest.raises(OSError, match=r"unknown ca|EOF occurred|reset"):
        ask(node, "/configz", tmp_path / "stranger")


def test_a_refusal_of_the_configuration_comes_before_any_answer(make: MakeKubelet) -> None:
    node = make({"cpuManagerPolicy": "static"})
    node.start()
    node.wait_for("service: end 1", times=2)
    assert node.is_active()
    refusal = "[cpumanager] unable to determine reserved CPU resources for static policy"
    assert {line for line in node.log() if not line.startswith("service")} == {"failed to run Kubelet: " + refusal}
    assert node.read(CHECKPOINT) is None


def test_a_refusal_of_the_checkpoint_comes_late_and_again_and_again(make: MakeKubelet) -> None:
    node = make(STATIC)
    node.write(CHECKPOINT, EMPTY.decode("ascii"))
    node.start()
    node.wait_for("service: end 1", times=2)
    refusal = (
        "Failed to start ContainerManager: start cpu manager error: could not restore state from checkpoint: configured"
        ' policy "static" differs from state checkpoint policy "none", please drain this node and delete the CPU'
        ' manager checkpoint file "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
    )
    # It was in good health by then.
    assert node.log()[:4] == ["service: start", "Started kubelet", refusal, "service: end 1"]
    assert node.read(CHECKPOINT) == EMPTY
    # All that repairs it.
    (node.root / CHECKPOINT[1:]).unlink()
    node.wait_for(STARTED)
    assert node.read(CHECKPOINT) == POOL


@pytest.mark.parametrize("how", [REFUSES, HANGS, NO_RUNTIME, DIES])
def test_faults(make: MakeKubelet, how: str) -> None:
    node = make(STATIC)
    node.fail(Fault(how, {"cpuManagerPolicy": "static"}, after=0.2))
    node.start()
    if how in (REFUSES, DIES):
        node.wait_for("service: end 1", times=2)
        assert [line for line in node.log() if "what the test wants" in line]
    elif how == NO_RUNTIME:
        wait_until(lambda: is_healthy(node))
    else:
        node.wait_for("service: start")
        assert not is_healthy(node)
    assert (node.read(CHECKPOINT) == POOL) == (how == DIES)
    # Another configuration does not have it.
    node.stop()
    node.configure({**node.configuration(), **NONE})
    if how == DIES:
        (node.root / CHECKPOINT[1:]).unlink()
    node.start()
    wait_until(lambda: node.read(CHECKPOINT) == EMPTY)


def test_the_service_goes_with_its_owner(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as owner:
        Service(["sleep", "600"], owner=owner.pid).write(tmp_path)
        program = [sys.executable, str(Path(__file__).parent / "service.py"), str(tmp_path)]
        subprocess.run([*program, "start"], check=True)
        assert subprocess.run([*program, "status"], check=False).returncode == 0
        owner.kill()
    wait_until(lambda: subprocess.run([*program, "status"], check=False).returncode == 3)
    assert (tmp_path / "log").read_text(encoding="utf-8") == "service: start\nservice: end -15\n"


# --- with an API server -----------------------------------------------------------------------------------


@pytest.fixture
def join(control_plane: ControlPlane, make: MakeKubelet, namespace: str) -> Iterator[MakeKubelet]:
    """Yield a function that makes nodes of the cluster."""
    with joining(control_plane) as joined:

        def join_one(configuration: dict[str, Any], name: str, **keywords: Any) -> KubeletNode:
            node = make(configuration, name, control_plane=control_plane, **keywords)
            node.start()
            joined(node)
            return node

        yield join_one


def test_pods_have_their_cpus_as_long_as_they_are(join: MakeKubelet, pods: Pods) -> None:
    node = join(STATIC, "pinned")
    first, second = pods.run("one", "2"), pods.run("other", "2")
    assert first["status"]["phase"] == second["status"]["phase"] == "Running"
    given = {first["metadata"]["uid"]: {"main": "1,5"}, second["metadata"]["uid"]: {"main": "2,6"}}
    assert node.entries() == given
    node.restart()
    node.wait_for(STARTED, times=2)
    assert node.entries() == given
    # Whoever takes the file away from a kubelet that runs finds it again at the next change, as it would be.
    (node.root / CHECKPOINT[1:]).unlink()
    pods.delete("one")
    wait_until(lambda: node.checkpoint() is not None and len(node.entries()) == 1)
    assert node.entries() == {second["metadata"]["uid"]: {"main": "2,6"}}


def test_a_file_that_was_removed_gives_running_pods_other_cpus(join: MakeKubelet, pods: Pods) -> None:
    node = join(STATIC, "repinned")
    pods.run("one", "2")
    later = pods.run("other", "2")
    pods.delete("one")
    uid = later["metadata"]["uid"]
    wait_until(lambda: node.entries() == {uid: {"main": "2,6"}})
    node.stop()
    (node.root / CHECKPOINT[1:]).unlink()
    node.start()
    wait_until(lambda: node.checkpoint() is not None and node.entries())
    assert node.entries() == {uid: {"main": "1,5"}}


def test_refused_pods(join: MakeKubelet, pods: Pods) -> None:
    node = join({**STATIC, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}, "refusing")
    status = pods.run("odd", "3")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "SMTAlignmentError")
    assert pods.run("whole", "4")["status"]["phase"] == "Running"
    # With less for pods, the kubelet refuses at its restart what runs already.
    node.stop()
    node.configure({**node.configuration(), "reservedSystemCPUs": "0-2,4-6"})
    (node.root / CHECKPOINT[1:]).unlink()
    node.start()
    wait_until(lambda: pods.get("whole")["status"]["phase"] == "Failed")
    assert pods.get("whole")["status"]["reason"] == "OutOfcpu"


def test_a_static_pod_is_there_again_when_it_is_deleted(join: MakeKubelet, pods: Pods) -> None:
    node = join({**STATIC, "staticPodPath": "/etc/kubernetes/manifests"}, "static")
    resources = {"limits": {"cpu": "2", "memory": "1Mi"}}
    metadata = {"name": "agent", "namespace": pods.namespace}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "main", "resources": resources}]}}
    node.write("/etc/kubernetes/manifests/agent.yaml", yaml.safe_dump(pod))
    node.restart()
    option = "--namespace=" + pods.namespace
    pods.control_plane.wait_for("pod/agent-static", "Ready", option)
    ((uid, cpus),) = node.entries().items()
    assert cpus == {"main": "1,5"}
    mirror = pods.get("agent-static")
    assert mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] == uid
    pods.delete("agent-static")
    pods.control_plane.wait_for("pod/agent-static", "Ready", option)
    assert pods.get("agent-static")["metadata"]["uid"] != mirror["metadata"]["uid"]
    assert node.entries() == {uid: cpus}


def test_a_kubelet_that_stops_leaves_its_node_as_it_was(join: MakeKubelet, pods: Pods) -> None:
    node = join(STATIC, "silent")
    pods.run("one", "2")
    pods.control_plane.kubectl("cordon", "silent")
    node.restart()
    node.wait_for(STARTED, times=2)
    pods.control_plane.wait_for("node/silent", "Ready")
    (found,) = pods.control_plane.objects("nodes", "--field-selector=metadata.name=silent")
    assert found["spec"]["unschedulable"]
    assert found["status"]["allocatable"]["cpu"] == "6"
    assert pods.get("one")["status"]["phase"] == "Running"
