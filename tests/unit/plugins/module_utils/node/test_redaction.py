# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets go, and what the files say to the modules stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.configuration import (
    KubeletConfiguration,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.installed.flag_file import (
    environment_words,
    kubelet_args,
    read_environment,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.flags import table
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.redaction import (
    UnsafeError,
    configuration_redacted,
    environment_redacted,
    flags_redacted,
    is_secret,
    kubelet_args_redacted,
    unit_redacted,
    without_users,
    words_redacted,
)

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
SECRET = "hunter2"


@pytest.mark.parametrize(
    "words",
    [
        ["k3s", "agent", "--token", SECRET],
        ["k3s", "agent", "--token=" + SECRET],
        ["k3s", "agent", "-t", SECRET],
        ["k3s", "server", "--agent-token=" + SECRET],
        ["k3s", "server", "--datastore-endpoint=mysql://user:%s@tcp(db:3306)/k3s" % SECRET],
        ["k3s", "server", "--etcd-s3-secret-key", SECRET, "--etcd-s3-access-key=" + SECRET],
        ["k3s", "server", "--vpn-auth=name=tailscale,joinKey=" + SECRET],
        ["k3s", "agent", "--kubelet-arg=manifest-url-header=Authorization:" + SECRET],
        ["kubelet", "--manifest-url-header=Authorization:Bearer " + SECRET],
        ["kubelet", "--manifest-url-header", "Authorization:" + SECRET],
        ["kubelet", "--manifest-url=https://user:%s@example.org/pods" % SECRET],
        ["kubelet", "--storage-driver-password=" + SECRET],
    ],
    ids=" ".join,
)
def test_secret_words(words: list[str]) -> None:
    found = words_redacted(words)
    assert len(found) == len(words)
    assert SECRET not in " ".join(found)
    assert [word.partition("=")[0] for word in found if word.startswith("-")] == [
        word.partition("=")[0] for word in words if word.startswith("-")
    ]
    assert words_redacted(found) == found
    assert SECRET not in flags_redacted(" ".join(words).replace("Bearer ", ""))


def test_the_flags_of_a_kubelet_stay() -> None:
    """All but those whose values are secret."""
    names = {name for line in vars(table).values() if isinstance(line, str) for name in line.split()}
    assert is_secret("--manifest-url-header")
    assert not any(map(is_secret, names & {"authentication-token-webhook", "tls-private-key-file", "node-labels"}))
    words = [
        "--config=/a",
        "--node-labels=a=b",
        "--authentication-token-webhook-cache-ttl",
        "1m",
        "--v",
        "2",
        "--",
        "x",
    ]
    assert words_redacted(words) == words
    text = (
        '--config=/a \\\n  --node-labels="a=b"\n--tls-private-key-file /a --container-runtime-endpoint=unix:///run/x\n'
    )
    assert flags_redacted(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:hunter2@proxy:3128/x", "https://redacted@proxy:3128/x"),
        ("socks5://hunter2@proxy", "socks5://redacted@proxy"),
        ("unix:///run/x@y", "unix:///run/x@y"),
        ("https://example.org/a@b", "https://example.org/a@b"),
        ("a@b.org", "a@b.org"),
    ],
)
def test_users_in_urls(text: str, expected: str) -> None:
    assert without_users(text) == expected


def test_an_environment_file() -> None:
    text = (
        '# hunter2\nKUBELET_ARGS="--v=2 --manifest-url-header=A:hunter2"\nOPTS=\'--x "a $b\\c"\'\nTOKEN=hunter2\n'
        "HTTPS_PROXY=http://u:hunter2@p\nNODE_IP=10.0.0.1\nOTHER=hunter2\nK3S_TOKEN=hunter2\nexport A=hunter2\n"
    )
    needed = {"NODE_IP", "K3S_TOKEN", "HTTPS_PROXY"}
    found = environment_redacted(text, needed)
    assert SECRET not in found
    assert list(read_environment(found)) == list(read_environment(text))
    assert read_environment(found)["NODE_IP"] == "10.0.0.1"
    assert read_environment(found)["OPTS"] == read_environment(text)["OPTS"]
    assert environment_words(found) == ["--v=2", "--manifest-url-header=A:redacted", "--x", "a $bc"]


@given(
    st.dictionaries(st.sampled_from(["A_ARGS", "B_OPTS", "C"]), st.text(alphabet="-ab \"'\\$`#;=\n\té", max_size=20))
)
def test_the_flags_in_an_environment_stay(variables: dict[str, str]) -> None:
    text = "".join(
        '%s="%s"\n' % (name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in variables.items()
    )
    assert environment_words(environment_redacted(text)) == environment_words(text)


def test_a_unit() -> None:
    settings = [
        ("Type", "notify"),
        ("Environment", "A B"),
        ("ExecStart", ""),
        ("ExecStart", "/usr/bin/kubelet $A --manifest-url-header=A:hunter2"),
        ("EnvironmentFile", "-/etc/x"),
        ("ExecStartPre", "/bin/echo hunter2"),
    ]
    found = unit_redacted(settings, lambda _value: {"A": '--x="1%"', "B": SECRET, "C": "kept"}, {"A", "C"})
    assert found == (
        '[Service]\nEnvironment="A=--x=\\"1%%\\""\nEnvironment="B=redacted"\nEnvironment="C=kept"\nExecStart=\n'
        "ExecStart=/usr/bin/kubelet $A --manifest-url-header=A:redacted\nEnvironmentFile=-/etc/x\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "token: hunter2\nkubelet-arg:\n  - v=2\n  - manifest-url-header=A:hunter2\n",
        "kubelet-arg+:\n- max-pods=5\nagent-token: 'hunter2'\n",
        '{"agent-token": "hunter2", "kubelet-arg": ["max-pods=250"]}',
        "# hunter2\nserver: https://x\n",
        "kubelet-arg: []\n",
        "kubelet-arg: v=3\n",
        "",
    ],
)
def test_rancher(text: str) -> None:
    found = kubelet_args_redacted(text)
    assert SECRET not in found
    for before in ("", "kubelet-arg: [a=b]\n"):
        expected = [[word.replace(SECRET, "redacted") for word in words] for words in kubelet_args([before, text])]
        assert kubelet_args([before, found]) == expected


def test_rancher_that_cannot_be_read() -> None:
    with pytest.raises(UnsafeError):
        kubelet_args_redacted('{"token": "hunter2", "kubelet-arg": [')


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "staticPodURLHeader:\n  Authorization:\n  - Bearer hunter2 # why\ncpuManagerPolicy: static # kept\n",
        HEADER + "staticPodURLHeader: {Authorization: [hunter2], B: ['hunter2-2']}\nmaxPods: 5\n",
        HEADER + 'staticPodURLHeader:\n  A: ["\\x68unter2"]\nclusterDomain: hunter.local\n',
        HEADER + "staticPodURLHeader:\n  A: [static]\ncpuManagerPolicy: static\n",
        HEADER + "StaticPodURLHeader: hunter2\n",
        HEADER + "staticPodURL: https://user:hunter2@example.org/\n",
        '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", %s}'
        % '"staticPodURLHeader": {"A": ["hunter2"]}',
    ],
)
def test_a_configuration(text: str) -> None:
    found = configuration_redacted(text)
    assert "unter2" not in found
    before, after = (KubeletConfiguration.parse(content).values for content in (text, found))
    for key in before:
        assert key.lower().startswith("staticpodurl") or after[key] == before[key]
    assert list(before) == list(after)


def test_a_configuration_without_secrets_stays_to_the_byte() -> None:
    text = HEADER + "# comment\r\nfeatureGates: {A: true}\n"
    assert configuration_redacted(text) == text
    broken = "kind: Nothing\ncpuManagerPolicy: [\n"
    assert configuration_redacted(broken) == broken


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Config\nusers:\n- user:\n    token: hunter2\n    client-key-data: 'hunter2'\n",
        '{"kind":"Config","users":[{"user":{"token":"hunter2","password":"hunter2"}}]}',
    ],
)
def test_another_file_in_its_place(text: str) -> None:
    assert SECRET not in configuration_redacted(text)


def test_a_broken_configuration_with_headers_is_not_told_apart() -> None:
    with pytest.raises(UnsafeError):
        configuration_redacted("staticPodURLHeader: {A: [hunter2]\n")
