# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files of a node trial starts open, and whom they reach; and that no answer is from a part of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import need
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

from .fleet import ROLLOUT
from .kubelet_node import QUIET, saved
from .test_trial import CONTAINERD
from .test_trial_refused import quick_node
from .trial_node import CHECKPOINT, STATIC, LiveNode

DAMAGED = '{"policyName":"none","defaultCpuSet":"","entries":null,"checksum":1}'
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: own, namespace: kube-system}
spec: {containers: [{name: c, image: registry.invalid/x:1, resources: {limits: {cpu: "1", memory: 1Mi}}}]}
"""
# Says what it finds at the paths of a flag that no kubelet has: the names in a directory, and the kind of all else.
_LOOKS = """\
#!%s -S
import os, socket, sys
if "--version" in sys.argv:
    print("Kubernetes vVERSION")
    sys.exit()
for path in next(word for word in sys.argv if word.startswith("--look=")).partition("=")[2].split(":"):
    try:
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        kind = "reached"
    except OSError:
        kind = "file" if os.path.isfile(path) else "none"
        if os.path.isdir(path):
            kind = ",".join(sorted(os.listdir(path))) or "empty"
    print(kind, end=" ")
print()
sys.exit(1)
""".replace("VERSION", kubernetes.version())


@pytest.fixture
def node(real_kubelet: Path, tmp_path: Path) -> Iterator[LiveNode]:
    """Yield a node with the real kubelet."""
    need("unshare", "mount")
    with alone():
        yield LiveNode(real_kubelet, tmp_path / "node")


@pytest.fixture
def looks(tmp_path: Path) -> Iterator[LiveNode]:
    """Yield a node whose kubelet is a program that says what it finds."""
    need("unshare", "mount")
    with alone():
        yield quick_node(tmp_path, _LOOKS % os.path.realpath(sys.executable))


def running(node: LiveNode, lock: str) -> list[str]:
    """Return the command line of the node's own kubelet, which ends when anybody opens this file."""
    node.configure({**QUIET, **STATIC, "healthzPort": 0})
    node.flags.remove("--kubeconfig=/etc/kubernetes/kubelet.conf")
    node.flags += ["--lock-file=" + lock, "--exit-on-lock-contention"]
    runtime = [
        *kubernetes.flags("kubelet", kubernetes.version()),
        "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
    ]
    return ["/opt/bin/kubelet", *node.flags, *runtime]


# In each of these directories something is planned, or brought in.
@pytest.mark.parametrize("lock", ["/run/kubelet.lock", "/var/lib/kubelet/kubelet.lock", "/etc/kubernetes/kubelet.lock"])
def test_a_kubelet_that_ends_when_its_lock_file_is_opened_lives_on(node: LiveNode, lock: str) -> None:
    planned = {"/etc/kubernetes/planned.yaml": "planned\n"}
    done = node.answer("beside", containerd=CONTAINERD, kubelet=running(node, lock), files=planned)
    assert done["runs"]
    assert done["after"] == done["before"]
    assert (done["answer"]["starts"], done["answer"]["reason"]) == (True, "")


def test_such_a_kubelet_lives_on_through_the_check_of_a_rollout(node: LiveNode, tmp_path: Path) -> None:
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "kubelet_node_root": "/",
        "kubelet_manage_service": False,
        "kubelet_drain": False,
        "kubelet_cpu_manager_reconcile_period": "7s",
    }
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"node": host}}}), encoding="utf-8")
    command = ["ansible-playbook", "--inventory=%s" % inventory, ROLLOUT, "--check"]
    kubelet = running(node, "/run/kubelet.lock")
    done = node.answer("beside", containerd=CONTAINERD, kubelet=kubelet, command=command)
    assert done["status"] == 0, done["output"]
    assert "tried by kubelet %s" % kubernetes.version() in done["output"]
    assert done["runs"]


# What a start reads, and what each program of this machine does.
OPENED = {
    *("/etc/systemd/system", "/etc/systemd/system/kubelet.service"),
    *("/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/hosts", "/etc/machine-id", "/etc/resolv.conf", "/etc/localtime"),
    *("/opt/bin/kubelet", "/opt/bin/containerd"),
    *("/opt/sysctl/" + name for name in ("overcommit_memory", "panic_on_oom", "panic", "panic_on_oops")),
    *("/opt/sysctl/" + name for name in ("root_maxkeys", "root_maxbytes")),
    *("/var/lib/kubelet", "/var/lib/kubelet/config.yaml", CHECKPOINT, "/var/lib/kubelet/memory_manager_state"),
    *("/var/lib/kubelet/pki", "/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet.key"),
    *("/run/ca.crt", "/run/resolv.conf"),
}


def test_a_trial_opens_only_what_a_start_reads_and_writes_nothing(node: LiveNode) -> None:
    authority = (node.root / "var/lib/kubelet/pki/kubelet.crt").read_text(encoding="ascii")
    node.configure(
        {
            "cpuManagerPolicy": "none",
            "authentication": {"x509": {"clientCAFile": "/run/ca.crt"}},
            "resolvConf": "/run/resolv.conf",
            "volumePluginDir": "/var/lib/volume-plugins",
        }
    )
    node.write(CHECKPOINT, saved("none", "").decode("ascii"))
    others = [
        *("/etc/kubernetes/bootstrap.conf", "/etc/kubernetes/pki/ca.key", "/var/lib/kubelet/seccomp/profile.json"),
        *("/var/lib/kubelet/config.json", "/var/lib/kubelet/pki/kubelet-client-current.pem"),
        *("/var/lib/kubelet/pods/uid/volumes/token", "/var/lib/kubelet/plugins/a/state", "/var/lib/state.db"),
        *("/var/lib/volume-plugins/vendor~x/x", "/var/lib/kubelet/device-plugins/a.lock"),
    ]
    for path in others:
        node.write(path, "secret\n")
    node.flags += [
        *("--bootstrap-kubeconfig=/etc/kubernetes/bootstrap.conf", "--lock-file=/run/lock/kubelet.lock"),
        *("--exit-on-lock-contention", "--log-file=/run/kubelet.log", "--logtostderr=false"),
        *("--containerd=/var/lib/containerd.sock", "--docker", "unix:///var/lib/docker.sock"),
        *("--image-service-endpoint=unix:///var/lib/image.sock", "--manifest-url=http://127.0.0.1:1/"),
    ]
    sockets = [
        *("/var/lib/containerd.sock", "/var/lib/docker.sock", "/var/lib/image.sock", "/run/docker.sock"),
        *("/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/systemd/private", "/run/systemd/notify"),
        *("/run/dbus/system_bus_socket", "/var/lib/kubelet/device-plugins/kubelet.sock"),
        *("/var/lib/kubelet/pod-resources/kubelet.sock", "/var/lib/kubelet/plugins_registry/csi-reg.sock"),
    ]
    texts = {"/run/ca.crt": authority, "/run/resolv.conf": "", "/run/lock/kubelet.lock": "", "/run/kubelet.log": "x\n"}
    done = node.answer("watch", sockets=sockets, texts=texts, pipes=["/var/lib/kubelet/pipe"])
    answer = done["answer"]
    assert (answer["starts"], answer["message"], answer["reason"]) == (True, "", "")
    assert (done["reached"], done["written"]) == ([], [])
    assert set(done["opened"]) <= OPENED
    # It is seen who opens what.
    assert {CHECKPOINT, "/var/lib/kubelet/config.yaml", "/run/ca.crt", "/opt/bin/kubelet"} <= set(done["opened"])


# --- static pods ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configuration", "flags"),
    [
        ({"staticPodPath": "/etc/kubernetes/manifests"}, []),
        ({"staticPodPath": "../../../etc/kubernetes/manifests"}, []),
        ({"staticPodPath": ""}, ["--pod-manifest-path=manifests"]),
        ({"staticPodPath": ""}, ["--pod-manifest-path", "./manifests/pod.yaml"]),
        ({"staticPodPath": "/var/lib/kubelet/manifests"}, []),
    ],
)
def test_static_pods_of_the_node_are_not_started(
    node: LiveNode, configuration: dict[str, Any], flags: list[str]
) -> None:
    node.write("/etc/kubernetes/manifests/pod.yaml", POD)
    node.write("/var/lib/kubelet/manifests/pod.yaml", POD)
    node.write("/etc/systemd/system/kubelet.service.d/here.conf", "[Service]\nWorkingDirectory=/etc/kubernetes\n")
    node.configure({**STATIC, **configuration})
    node.flags += flags
    done = node.answer("watch")
    assert done["answer"]["starts"] is True
    assert not [path for path in done["opened"] if "manifests" in path]


def test_a_relative_path_is_read_where_the_service_is_started(node: LiveNode) -> None:
    authority = (node.root / "var/lib/kubelet/pki/kubelet.crt").read_text(encoding="ascii")
    node.write("/etc/kubernetes/ca.crt", authority)
    node.flags.append("--client-ca-file=ca.crt")
    refused = node.tried()
    assert refused["starts"] is False
    assert "open ca.crt: no such file or directory" in refused["message"]
    node.write("/etc/systemd/system/kubelet.service.d/here.conf", "[Service]\nWorkingDirectory=/etc/kubernetes\n")
    assert node.tried()["starts"] is True


# --- sockets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_flag", [True, False])
@pytest.mark.parametrize("endpoint", ["/var/lib/image.sock", "/run/containerd/image.sock"])
def test_the_image_service_of_the_node_is_neither_reached_nor_missed(
    node: LiveNode, endpoint: str, is_flag: bool
) -> None:
    if is_flag:
        node.flags.append("--image-service-endpoint=unix://" + endpoint)
    else:
        node.configure({**STATIC, "imageServiceEndpoint": "unix://" + endpoint})
    done = node.answer("watch", sockets=[endpoint])
    assert (done["answer"]["starts"], done["answer"]["reason"]) == (True, "")
    assert done["reached"] == []


def test_a_socket_that_a_field_names_is_not_reached(looks: LiveNode) -> None:
    """As the endpoint of tracing, which no flag replaces."""
    looks.configure({**STATIC, "tracing": {"endpoint": "unix:///var/lib/traces.sock"}})
    looks.flags.append("--look=/var/lib/traces.sock:/var/lib/other.sock")
    done = looks.answer("watch", sockets=["/var/lib/traces.sock", "/var/lib/other.sock"])
    assert done["answer"]["message"] == "none reached"
    assert done["reached"] == ["/var/lib/other.sock"]


# --- all that a start reads, or no answer ---------------------------------------------------------------------


def test_many_files_beside_it_do_not_hide_the_checkpoint(node: LiveNode) -> None:
    node.write(CHECKPOINT, DAMAGED)
    for number in range(2100):
        node.write("/var/lib/kubelet/%s/profile-%d.json" % ("abc"[number % 3], number), "{}")
    answer = node.tried()
    assert answer["starts"] is False
    assert "checkpoint is corrupted" in answer["message"]
    assert not answer["prediction_differs"]


def test_of_a_state_that_is_too_large_there_is_no_answer(node: LiveNode) -> None:
    node.write("/var/lib/kubelet/pod_status_manager_state", "")
    os.truncate(node.root / "var/lib/kubelet/pod_status_manager_state", (16 << 20) + 1)
    answer = node.tried()
    assert (answer["starts"], answer["prediction_differs"]) == (None, False)
    assert answer["reason"].endswith("/var/lib/kubelet/pod_status_manager_state has more than 16777216 bytes")


def test_what_links_lead_to_is_there_or_there_is_no_answer(looks: LiveNode) -> None:
    looks.flags += ["--tls-cert-file=/run/tls/cert", "--image-credential-provider-bin-dir=/run/providers"]
    looks.flags.append("--look=/run/tls/cert:/run/providers:/run/secret")
    texts = {"/run/generation/cert": "x", "/run/providers/ecr": "x", "/run/secret": "x"}
    answer = looks.answer("watch", texts=texts, links={"/run/tls": "/run/generation"})["answer"]
    assert answer["message"] == "file ecr none"
    lost = {**texts, "/run/other/gcr": "x"}
    links = {"/run/tls": "/run/generation", "/run/providers/gcr": "../other/gcr"}
    answer = looks.answer("watch", texts=lost, links=links)["answer"]
    assert (answer["starts"], answer["reason"]) == (
        None,
        "cannot be tried: /run/providers: the trial does not have what is there",
    )


@pytest.mark.parametrize("where", ["/run/ca.crt", "/var/lib/ca.crt"])
def test_a_pipe_is_not_read(looks: LiveNode, where: str) -> None:
    """Who writes into it would have a reader that goes away."""
    looks.flags += ["--client-ca-file=" + where, "--look=" + where]
    done = looks.answer("watch", pipes=[where])
    reason = "cannot be tried: %s is no file, and the kubelet reads it at its start" % where
    assert (done["answer"]["starts"], done["answer"]["reason"]) == (None, reason)
    assert where not in done["opened"]


def test_certificates_of_the_kubelets_own_server_are_there_with_their_links(looks: LiveNode) -> None:
    names = ["kubelet-server-1.pem", "kubelet-client-1.pem", "kubelet.crt", "kubelet.lock", "ca.crt"]
    for name in names:
        looks.write("/etc/certificates/" + name, "x")
    (looks.root / "etc/certificates/kubelet-server-current.pem").symlink_to("/etc/certificates/kubelet-server-1.pem")
    looks.flags += ["--cert-dir=/etc/certificates", "--look=/etc/certificates"]
    done = looks.answer("watch")
    assert done["answer"]["message"] == "kubelet-server-1.pem,kubelet-server-current.pem,kubelet.crt"
    assert not {"/etc/certificates/" + name for name in ("kubelet-client-1.pem", "kubelet.lock")} & set(done["opened"])


def test_drop_ins_are_planned_beside_those_that_are_there(looks: LiveNode) -> None:
    looks.flags += ["--config-dir=/run/kubelet.d", "--look=/run/kubelet.d"]
    texts = {"/run/kubelet.d/%s.conf" % name: "x" for name in ("first", "second")}
    files = {"/run/kubelet.d/second.conf": None, "/run/kubelet.d/third.conf": "x"}
    assert looks.answer("watch", texts=texts, files=files)["answer"]["message"] == "first.conf,third.conf"


def test_logs_of_pods_are_not_there_to_be_removed(looks: LiveNode) -> None:
    looks.configure({**STATIC, "podLogsDir": "/etc/pods"})
    looks.write("/etc/pods/uid/0.log", "x")
    looks.flags.append("--look=/etc/pods")
    assert looks.tried()["message"] == "empty"
