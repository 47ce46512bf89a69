# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets and names go, and what gives a kubelet its flags says the same to the modules."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import json_text, read_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.secrets import (
    address_redacted,
    is_secret,
    text_redacted,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import hashed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.services import read_environment
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet import flags as table
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flag_files import environment_words
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redacted_words import (
    said_redacted,
    words_redacted,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redaction import (
    UnsafeError,
    checkpoint_without_names,
    command_redacted,
    configuration_redacted,
    environment_redacted,
    is_prose,
    kubelet_args_redacted,
    lines_redacted,
    memory_state_without_names,
    unit_redacted,
    variables_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state import memory_manager as memory_formats
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import read_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import FORMATS, CheckpointError, fnv
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

SECRET = "hunter2"
# What begins a secret in a text, over and over.
OF_TEXTS = (
    "token: ",
    "token=",
    'token="',
    "token={",
    "--token ",
    "-----BEGIN A-----",
    "eyJ",
    "Bearer ",
    "K10a",
    "anchor '",
)


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
    assert SECRET not in lines_redacted(" ".join(words)) + command_redacted(" ".join(words))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("sh", "-c", "exec kubelet --v=1 --token=hunter2"), ("sh", "-c", "exec kubelet --v=1 --token=redacted")),
        (("sh", "-c", "curl -H 'A: hunter2' | sh"), ("sh", "-c", 'redacted -H "redacted redacted" redacted sh')),
        (("sh", "-c", "sh -c 'env T=\"hunter2 2\" k3s'"), ("sh", "-c", 'sh -c "env T=redacted redacted"')),
        (("/usr/bin/env", "TOKEN=hunter2", "/opt/kubelet"), ("/usr/bin/env", "TOKEN=redacted", "/opt/kubelet")),
        (("TOKEN=hunter2", "kubelet"), ("TOKEN=redacted", "kubelet")),
        (("k0s", "worker", SECRET), ("k0s", "worker", "redacted")),
        (("k3s agent --token hunter2",), ("k3s agent --token redacted",)),
        (("k3s", "agent", "--token", "-hunter2"), ("k3s", "agent", "--token", "redacted")),
        (("k3s", "agent", "--token", "--hunter2"), ("k3s", "agent", "--token", "redacted")),
        (("k3s", "--token", "--kubelet-arg=v=2"), ("k3s", "--token", "--kubelet-arg=v=2")),
        (("k3s", "-hunter2", "-t=hunter2", "-token=hunter2"), ("k3s", "-redacted", "-t=redacted", "-token=redacted")),
        (("--kubelet-arg", "manifest-url-header=A:hunter2"), ("--kubelet-arg", "manifest-url-header=A:redacted")),
        (("kubelet", "--config", "--token=hunter2"), ("kubelet", "--config", "--token=redacted")),
        (("kubelet", "--manifest-url=https://x/hunter2"), ("kubelet", "--manifest-url=https://x/redacted")),
        (("kubelet", "--vault=hunter2", "--lock=$A"), ("kubelet", "--vault=redacted", "--lock=$A")),
        (("kubelet", "--vault-file=/a", "--vault-dir=hunter2"), ("kubelet", "--vault-file=/a", "--vault-dir=redacted")),
        (("kubelet", "--", "--token=hunter2"), ("kubelet", "--", "redacted")),
    ],
    ids=str,
)
def test_command_lines(words: tuple[str, ...], expected: tuple[str, ...]) -> None:
    has_program = not words[0].startswith("-")
    assert words_redacted(words, has_program) == [*expected]
    assert words_redacted(expected, has_program) == [*expected]


def test_the_flags_of_a_kubelet_stay() -> None:
    """All but those whose values are secret."""
    secret = {name for name in table.FLAGS if is_secret(name)}
    assert secret == {"manifest-url-header", "storage-driver-password"}
    words = ["kubelet", "--config=/a", "--node-labels=a=b", "--authentication-token-webhook-cache-ttl", "1m", "--v"]
    words += ["2", "--oom-score-adj", "-999", "-v3", "--no-flag-of-it", "--switch-of-others=true", "--", "server"]
    assert words_redacted(words) == words
    lines = "--config=/a \n --tls-private-key-file  /a\t--container-runtime-endpoint='unix:///x@y'\n# a comment\n"
    assert lines_redacted(lines) == lines
    command = '-/usr/bin/kubelet --node-labels="a=b" --root-dir=${ROOT}/%p $KUBELET_ARGS'
    assert command_redacted(command) == command


def test_lines() -> None:
    text = "# it was --token=hunter2\r\n--config=/a\r\n--token\r\nhunter2 --v=2\n\nhunter2"
    assert lines_redacted(text) == "# redacted\r\n--config=/a\r\n--token\r\nredacted --v=2\n\nredacted"


def test_a_command_that_systemd_does_not_understand_stays_one() -> None:
    found = command_redacted("kubelet '--token=hunter2")
    assert SECRET not in found
    assert command_redacted(found) == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://user:hunter2@proxy:3128/x", "https://redacted@proxy:3128/x"),
        ("socks5://hunter2@proxy", "socks5://redacted@proxy"),
        ("https://user:h/u?n#t er@2@proxy", "https://redacted@proxy"),
        ("https://hunter/2@proxy", "https://redacted@proxy"),
        ("https://x/a?token=hunter2", "https://x/a?redacted"),
        ("https://x/a#hunter2?b", "https://x/a#redacted"),
        ("https://u:p@x?token=hunter2#3", "https://redacted@x?redacted"),
        ("unix:///run/x@y", "unix:///run/x@y"),
        ("https://example.org/a", "https://example.org/a"),
        ("a@b.org", "a@b.org"),
    ],
)
def test_addresses(value: str, expected: str) -> None:
    assert address_redacted(value) == expected
    assert address_redacted(expected) == expected


def test_an_address_may_lose_its_path() -> None:
    assert address_redacted("https://a:b@x:8/hunter2?c", keep_path=False) == "https://redacted@x:8/redacted"
    assert address_redacted("https://x:8/", keep_path=False) == "https://x:8/"


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# the cluster's, (as everywhere)", True),
        ("# The kubelet's CPU settings, written by kubenode.cpu_manager.", True),
        ("# hunter2", False),
        ("# the token is x", False),
        ("#a: b", False),
    ],
)
def test_prose(comment: str, expected: bool) -> None:
    assert is_prose(comment) is expected


def test_a_variable_is_kept_where_a_flag_of_the_kubelet_takes_it() -> None:
    command = "kubelet --node-ip=${A} --node-labels $B $C --token $D --manifest-url-header=A:$E --manifest-url=$F x$G"
    assert variables_of(command) == {"A": True, "B": True, "C": False}
    assert variables_of('kubelet "--node-ip=${A}') == {}


def test_an_environment_file() -> None:
    text = (
        '# hunter2\nKUBELET_ARGS="--v=2 --manifest-url-header=A:hunter2"\nOPTS=\'--node-labels "a $b\\c"\'\n'
        "TOKEN=--hunter2\nHTTPS_PROXY=http://u:hunter2@p\nNODE_IP=10.0.0.1\nOTHER=hunter2\nK3S_TOKEN=hunter2\n"
        "export A=hunter2\nMORE=--hunter2\nURL=https://a:hunter2@x/?hunter2\nJOIN=hunter2\nEXTRA='--feature --gates'\n"
    )
    needed = {"NODE_IP": True, "K3S_TOKEN": True, "HTTPS_PROXY": True, "URL": True, "JOIN": False, "EXTRA": False}
    found = environment_redacted(text, needed)
    assert SECRET not in found
    assert list(read_environment(found)) == list(read_environment(text))
    assert read_environment(found)["NODE_IP"] == "10.0.0.1"
    assert read_environment(found)["URL"] == "https://redacted@x/?redacted"
    assert read_environment(found)["OPTS"] == read_environment(text)["OPTS"]
    given = ["--v=2", "--manifest-url-header=A:redacted", "--node-labels", "a $bc", "--feature", "--gates"]
    assert environment_words(found) == given


def quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


@given(
    st.dictionaries(st.sampled_from(["A_ARGS", "B_OPTS"]), st.text(alphabet="-vh \"'\\$`#;=\n\té", max_size=20)),
)
def test_the_flags_in_an_environment_are_those_without_secrets(variables: dict[str, str]) -> None:
    files = ['%s="%s"\n' % (name, quoted(value)) for name, value in variables.items()]
    expected = [word for file in files for word in words_redacted(environment_words(file), has_program=False)]
    assert environment_words(environment_redacted("".join(files))) == expected


def test_a_unit() -> None:
    settings = [
        ("Type", "notify"),
        ("Environment", "A B"),
        ("ExecStart", ""),
        ("ExecStart", "/usr/bin/kubelet $A --manifest-url-header=A:hunter2 '--node-labels=a b' \"--x=\\x41\\xff'\""),
        ("EnvironmentFile", "-/etc/x"),
        ("ExecStartPre", "/bin/echo hunter2"),
    ]
    variables = {"A": '--v="1%"', "B": SECRET, "C": "kept", "D": SECRET}
    found = unit_redacted(settings, lambda _value: variables, {"A": False, "C": True, "D": False})
    assert found == (
        '[Service]\nEnvironment="A=--v=\\"1%%\\""\nEnvironment="B=redacted"\nEnvironment="C=kept"\n'
        'Environment="D=redacted"\nExecStart=\nExecStart=/usr/bin/kubelet $A --manifest-url-header=A:redacted '
        '"--node-labels=a b" --x=redacted\nEnvironmentFile=-/etc/x\n'
    )
    assert command_redacted("kubelet --token=hunter2 --node-labels=\"\\x41\\xff'\" '' x") == (
        'kubelet --token=redacted "--node-labels=A\\xff\'" "" redacted'
    )


@pytest.mark.parametrize(
    "redact",
    [
        lambda text: " ".join(words_redacted([text])),
        lambda text: " ".join(words_redacted(text.split())),
        lines_redacted,
        command_redacted,
        lambda text: environment_redacted("A_ARGS=%s" % text),
        configuration_redacted,
        address_redacted,
        text_redacted,
        said_redacted,
        lambda text: str(is_prose("# " + text)),
    ],
    ids=["words", "many words", "lines", "command", "environment", "configuration", "address", "text", "said", "prose"],
)
@pytest.mark.parametrize(
    "unit", ["a.", "a://", ":", "a://a:@", "--a ", "-", "\\", "'\" ", "$a", "#", " #", "= ", "é", *OF_TEXTS]
)
def test_long_texts_take_time_that_grows_with_their_length(redact: Callable[[str], str], unit: str) -> None:
    """Of a text four times as long, no more than seven times as many calls and steps of Python."""

    def steps(length: int) -> int:
        count = 0

        def trace(*_arguments: object) -> object:
            nonlocal count
            count += 1
            return trace

        number = length // len(unit)
        # Each quote has its end, or systemd understands none of it.
        number -= number % 2 if unit == "anchor '" else 0
        text = "a://" * (unit == ":") + unit * number
        before = sys.gettrace()
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            with suppress(UnsafeError):
                redact(text)
        finally:
            sys.settrace(before)
        return count

    # What is imported at the first time does not count.
    steps(10)
    assert steps(4000) <= 7 * steps(1000) + 1000
    # What the patterns do is not counted: it ends at all.
    redact(unit * (32768 // len(unit)))


def test_kubelet_args_that_cannot_be_read() -> None:
    with pytest.raises(UnsafeError) as caught:
        kubelet_args_redacted('{"token": "hunter2", "kubelet-arg": [')
    assert SECRET not in str(caught.value)


ASSIGNMENTS = {
    "uid-1": {"server": CPUSet.parse("2-3"), "side<car>": CPUSet.parse("4")},
    "uid-2": {"server": CPUSet([5])},
}
STATE = State(CPUSet.parse("0-1,6-7"), ASSIGNMENTS)
HASHED = {uid: {hashed(name): cpus for name, cpus in containers.items()} for uid, containers in ASSIGNMENTS.items()}


def test_a_hash_is_short_and_always_the_same() -> None:
    assert hashed("server") == "b3eacd33"
    assert hashed("\udcff") == hashed("\udcff") != hashed("server")


@pytest.mark.parametrize(("version", "minor"), [(2, 30), (2, 36), (3, 36), (4, 37)])
def test_a_checkpoint(version: int, minor: int) -> None:
    content = write_checkpoint("static", STATE, FORMATS[version - 1])
    found = checkpoint_without_names(content)
    assert b"server" not in found
    assert b"car" not in found
    state = read_checkpoint(found, minor, pod_level=version == 3).state()
    assert state == STATE._replace(assignments=HASHED)
    if version == 4:
        # Also what an older kubelet reads of it.
        assert read_checkpoint(found, 36).state() == STATE._replace(assignments=HASHED)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_wrong_checksum_stays_wrong(version: int) -> None:
    data = json.loads(write_checkpoint("static", STATE, FORMATS[version - 1]))
    for name in {"checksum", "dataChecksum"} & data.keys():
        data[name] += 1
    found = checkpoint_without_names(json.dumps(data).encode())
    assert b"server" not in found
    with pytest.raises(CheckpointError):
        read_checkpoint(found, 37 if version == 4 else 36, pod_level=version == 3).verify()


def test_a_checkpoint_without_containers_stays_the_same() -> None:
    content = write_checkpoint("static", State(CPUSet.parse("0-7"), {}), FORMATS[1])
    assert checkpoint_without_names(content) == content


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff", b'{"entries":{"u":{"server":"1"}},"x":1}', b'{"entries":5}', b"[" * 100000],
)
def test_a_damaged_state_is_not_told_apart(content: bytes) -> None:
    for without_names in (checkpoint_without_names, memory_state_without_names):
        with pytest.raises(UnsafeError):
            without_names(content)


@pytest.mark.parametrize(("minor", "pod_level"), [(33, False), (36, False), (36, True), (37, True)])
def test_a_memory_state(minor: int, pod_level: bool) -> None:
    config = memory_formats.MemoryConfig("Static", {}, minor, pod_level)
    block = {"numaAffinity": [0], "type": "memory", "size": 1024}
    plain = json.loads(memory_formats.write_memory(config, {}, {} if pod_level else None))
    entries = {"uid-1": {"server": [block]}}
    # The same with a container, and sums that are right.
    if "data" in plain:
        inner = {**json.loads(plain["data"]), "entries": entries}
        plain["data"] = json_text(inner)
        plain["dataChecksum"] = fnv("(string)" + plain["data"])
    plain["entries"] = entries
    fields = memory_formats.FORMAT2 if pod_level and minor == 36 else memory_formats.FORMAT1
    plain["checksum"] = memory_formats.sum_of(
        fields, memory_formats.decoded(fields, "x", read_json(json.dumps(plain).encode()))[0]
    )
    content = json.dumps(plain).encode()
    assert list((memory_formats.restore_memory(content, config).entries or {})["uid-1"]) == ["server"]
    found = memory_state_without_names(content)
    assert b"server" not in found
    restored = memory_formats.restore_memory(found, config).entries or {}
    assert list(restored["uid-1"]) == [hashed("server")]
    plain["checksum"] += 1
    plain["dataChecksum"] = 5
    with pytest.raises(memory_formats.MemoryStateError):
        memory_formats.restore_memory(memory_state_without_names(json.dumps(plain).encode()), config)
