# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_trial/trial_paths.py; tests/cluster/test_trial_files.py has the trials themselves."""

from __future__ import annotations

from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flags import FLAGS, STRING, STRINGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start import decode
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_paths import (
    EMPTY_FIELDS,
    LEFT_OUT,
    READ,
    REPLACED,
    REPLACED_IF_GIVEN,
    ROOM,
    SOCKET,
    UNTRIED_WITH,
    WRITTEN,
    NodePaths,
    added_flags,
    is_certificate,
    node_paths,
    own_flags,
    trial_words,
    why_untried,
)

ADDED = ["--%s=%s" % flag for flag in REPLACED.items()]
ROOT = "/var/lib/kubelet"
STATES = [
    *("%s/%s_state" % (ROOT, name) for name in ("cpu_manager", "memory_manager", "dra_manager")),
    *("%s/%s_state" % (ROOT, name) for name in ("allocated_pods", "actuated_pods", "pod_status_manager")),
    ROOT + "/device-plugins/kubelet_internal_checkpoint",
]


def paths_of(*words: str, directory: str = "/", **values: Any) -> NodePaths:
    return node_paths(words, values, ROOT, directory)


# --- the tables -----------------------------------------------------------------------------------------------

# Flags with texts that name nothing which a start reads, and nothing that anybody watches. The last ones are programs
# and directories that only pods need, or Docker.
_NO_PATHS = """
    allowed-unsafe-sysctls cgroup-root cloud-provider cluster-dns cluster-domain container-log-max-size
    container-runtime containerd-namespace cpu-manager-policy docker-env-metadata-whitelist enforce-node-allocatable
    event-storage-age-limit event-storage-event-limit hairpin-mode hostname-override kube-api-content-type
    kube-reserved-cgroup kubelet-cgroups log-backtrace-at log-file-max-size logging-format master-service-namespace
    memory-manager-policy network-plugin node-ip non-masquerade-cidr pod-cidr pod-infra-container-image provider-id
    reserved-cpus runtime-cgroups stderrthreshold storage-driver-db storage-driver-host storage-driver-password
    storage-driver-table storage-driver-user system-cgroups system-reserved-cgroup tls-cipher-suites tls-min-version
    topology-manager-policy topology-manager-scope
    cni-bin-dir cni-cache-dir cni-conf-dir docker-root experimental-mounter-path
"""
NO_PATHS = frozenset(_NO_PATHS.split())
# Fields without a flag. Tracing may have a socket as its endpoint, which is hidden as such.
NO_PATH_FIELDS = {"apiVersion", "endpoint", "filePattern", "key", "kind", "preloadedImagesVerificationAllowlist"} | {
    *("showHiddenMetricsForVersion", "swapBehavior", "value")
}
TABLES = (READ, WRITTEN, frozenset(REPLACED), frozenset(REPLACED_IF_GIVEN), LEFT_OUT - set(REPLACED), UNTRIED_WITH)


def test_of_each_flag_that_may_name_a_path_a_trial_knows_what_to_do_with_it() -> None:
    """A new flag has to be looked at: is it read at a start, or locked, watched or listened at?"""
    names = [name for table in (*TABLES, NO_PATHS) for name in table]
    assert len(names) == len(set(names)), "a flag is in two tables"
    assert {name for name, flag in FLAGS.items() if flag.kind in (STRING, STRINGS)} <= set(names)
    assert set(names) <= set(FLAGS)


def test_of_each_field_that_may_name_a_path_a_trial_knows_what_to_do_with_it() -> None:
    by_flags = {flag.path[-1] for flag in FLAGS.values() if flag.path}
    texts = {
        name
        for struct in decode.STRUCTS.values()
        for name, field in struct.items()
        if "string" in (field.type.name, field.type.item and field.type.kind == decode.LIST and field.type.item.name)
    }
    assert texts - by_flags == NO_PATH_FIELDS | set(EMPTY_FIELDS)


# --- the command line -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ([], []),
        (["--config=/c.yaml", "--v=2"], ["--config=/c.yaml", "--v=2"]),
        (["--kubeconfig=/k", "--config", "/c"], ["--config", "/c"]),
        (["--kubeconfig", "k", "--bootstrap-kubeconfig", "/b", "--v=2"], ["--v=2"]),
        (["--bootstrap_kubeconfig=/b"], []),
        # The value of a flag, and no flag.
        (["--hostname-override", "--kubeconfig=/k"], ["--hostname-override", "--kubeconfig=/k"]),
        (["--manifest-url=http://x", "--manifest-url-header=a:b"], []),
        # What nobody knows here is for the kubelet to judge.
        (["--no-such-flag", "x"], ["--no-such-flag", "x"]),
        (["--fail-swap-on", "x"], ["--fail-swap-on", "x"]),
    ],
)
def test_the_words_of_a_trial(words: list[str], kept: list[str]) -> None:
    assert trial_words(words, 36) == [*kept, *ADDED]


@pytest.mark.parametrize(
    ("words", "until"),
    [
        (["--experimental-bootstrap-kubeconfig=b"], 23),
        (["--docker", "unix:///x", "--docker-tls", "--docker-tls-key=/k", "--docker-endpoint=unix:///x"], 24),
        (["--logtostderr=false", "--log-file=/var/log/kubelet.log", "--log-dir", "/l"], 26),
    ],
)
def test_a_flag_that_the_kubelet_no_longer_has_is_left_for_it_to_refuse(words: list[str], until: int) -> None:
    """As in the trial of an upgrade."""
    assert trial_words(words, until - 1)[: len(words)] != words
    assert trial_words(words, until)[: len(words)] == words


def test_what_follows_two_dashes_stays_behind() -> None:
    assert trial_words(["--v=2", "--", "--kubeconfig=/k"], 36) == ["--v=2", *ADDED, "--", "--kubeconfig=/k"]


def test_flags_that_only_some_need() -> None:
    assert own_flags([], 23)["container-runtime"] == "remote"
    assert "container-runtime" not in own_flags([], 24)
    assert own_flags(["--lock-file", "/run/lock/kubelet.lock", "--exit-on-lock-contention"], 36) == {
        **REPLACED,
        "lock-file": ROOM + "/lock",
    }
    # Without a lock file the kubelet refuses the other flag, and so it does here.
    assert "lock-file" not in own_flags(["--exit-on-lock-contention", "--lock-file="], 36)
    assert own_flags(["--containerd=unix:///x/containerd.sock"], 36)["containerd"] == SOCKET
    for name in ("image-service-endpoint", "container-runtime-endpoint"):
        assert own_flags([], 36)[name] == "unix://" + SOCKET
    for name in ("pod-manifest-path", "volume-plugin-dir"):
        assert own_flags([], 36)[name].startswith(ROOM)
    assert own_flags([], 36)["manifest-url"] == ""


def test_a_flag_that_the_node_gives_is_none_that_the_trial_adds() -> None:
    """A kubelet that does not have it refuses it on a real start, too."""
    added = added_flags(["--containerd=/x", "--cgroup_driver=systemd", "--lock-file", "/run/l"])
    assert not {"containerd", "cgroup-driver", "lock-file"} & set(added)
    assert {"volume-plugin-dir", "container-runtime"} <= set(added)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--config=/c", "--config-dir=/d", "--root-dir", "/r", "--cert-dir=pki", "--dynamic-config-dir="], ""),
        (["--dynamic-config-dir", "/d"], "its configuration comes from the API server (--dynamic-config-dir)"),
        (
            ["--config=c.yaml"],
            "--config=c.yaml is no absolute path, and it is not known here where the kubelet finds it",
        ),
        (["--root-dir=r"], "--root-dir=r is no absolute path, and it is not known here where the kubelet finds it"),
    ],
)
def test_words_with_which_there_is_no_trial(words: list[str], why: str) -> None:
    assert why_untried(words, 23) == why
    # This one refuses the flag.
    assert why_untried(["--dynamic-config-dir", "/d"], 24) == ""


# --- the paths ------------------------------------------------------------------------------------------------


def test_only_what_a_start_reads_is_brought_in() -> None:
    found = paths_of(
        *("--kubeconfig=/run/k.conf", "--bootstrap-kubeconfig", "/run/b.conf", "--config=/run/k0s/config.yaml"),
        *("--lock-file=/run/lock/kubelet.lock", "--exit-on-lock-contention", "--vendor-state=/run/vendor.db"),
        *("--tls-cert-file=/run/a,b.crt", "--machine-id-file=/run/id,/run/other-id", "--pod-manifest-path=/run/pods"),
        staticPodPath="/run/manifests",
        resolvConf="/run/systemd/resolve/resolv.conf",
        authentication={"x509": {"clientCAFile": "/run/ca.crt"}},
        cgroupRoot="/run",
        containerRuntimeEndpoint="unix:///run/containerd/containerd.sock",
        registerWithTaints=[{"key": "no/path"}],
        maxPods=110,
        failSwapOn=False,
        volumePluginDir="/no\0path",
    )
    assert sorted(found.read) == sorted(
        ["/run/k0s/config.yaml", "/run/a,b.crt", "/run/id", "/run/other-id", "/run/systemd/resolve/resolv.conf"]
        + ["/run/ca.crt"]
    )
    assert found.states == STATES
    assert (found.written, found.certificates, found.empty) == ([ROOT], ROOT + "/pki", [])
    # Each may be a socket.
    assert {"/run/containerd/containerd.sock", "/run/manifests", "/run/lock/kubelet.lock"} <= set(found.others)
    assert not any("\0" in path for path in found.others)


def test_a_relative_path_begins_where_the_kubelet_begins_it() -> None:
    """At the directory of the configuration, of a drop-in file at the working directory, and so of a flag."""
    found = paths_of(
        *("--config=/etc/kubernetes/kubelet.yaml", "--tls-cert-file=../a.crt", "--cert-dir=pki"),
        directory="/srv/kubelet",
        authentication={"x509": {"clientCAFile": "../ca.crt"}},
    )
    assert set(found.read) == {"/etc/kubernetes/kubelet.yaml", "/srv/a.crt", "/etc/ca.crt", "/srv/ca.crt"}
    assert found.written == [ROOT, "/srv/kubelet/pki"]


@pytest.mark.parametrize(
    ("words", "written", "certificates"),
    [
        ((), [ROOT], ROOT + "/pki"),
        (("--cert-dir=/var/lib/kubelet/pki",), [ROOT], ROOT + "/pki"),
        (("--cert-dir=/a", "--cert-dir", "/etc/kubernetes/pki"), [ROOT, "/etc/kubernetes/pki"], "/etc/kubernetes/pki"),
    ],
)
def test_what_the_kubelet_may_write(words: tuple[str, ...], written: Sequence[str], certificates: str) -> None:
    assert (paths_of(*words).written, paths_of(*words).certificates) == (written, certificates)


def test_the_root_directory_and_that_of_the_devices_are_two() -> None:
    found = node_paths((), {}, "/data/kubelet/", "/")
    assert found.written == [ROOT, "/data/kubelet"]
    assert found.states[0] == "/data/kubelet/cpu_manager_state"
    assert found.states[-1] == ROOT + "/device-plugins/kubelet_internal_checkpoint"


def test_logs_of_pods_are_written_elsewhere() -> None:
    assert paths_of(podLogsDir="/data/pods").empty == ["/data/pods"]


def test_a_socket_is_one_however_it_is_written() -> None:
    for endpoint in ("/x/s.sock", "unix:/x/s.sock", "unix:///x/s.sock"):
        assert paths_of(tracing={"endpoint": endpoint}).others == ["/x/s.sock"]
    assert paths_of(tracing={"endpoint": "localhost:4317"}).others == []


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("kubelet.crt", True),
        ("kubelet.key", True),
        ("kubelet-server-current.pem", True),
        ("kubelet-server-2026-01-01-00-00-00.pem", True),
        # By them the API server knows the node.
        ("kubelet-client-current.pem", False),
        ("ca.crt", False),
        ("kubelet.lock", False),
    ],
)
def test_of_certificates_only_those_of_the_kubelets_server_are_copied(name: str, is_read: bool) -> None:
    assert is_certificate(name) is is_read
