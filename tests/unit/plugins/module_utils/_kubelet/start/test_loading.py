# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The --config file, the defaults of what it leaves out, and its feature gates."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import EVICTION_HARD
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import KUBELET_CONFIGURATION
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import (
    Finding,
    StartError,
    UnpredictableError,
    refused,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import (
    DUPLICATE,
    UNKNOWN,
    Absent,
    FileState,
    Ignored,
    Loaded,
    OddMember,
    load_configuration,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.load_cases import (
    DIRECTORY,
    HEAD,
    NO_HEAD,
    PATH,
    RESTARTS,
    STRUCT,
    given_values,
    load_files,
    refusal,
    takes_all,
)

_FILE_CONTEXT = "failed to load kubelet config file, path: %s, error: failed to load Kubelet config file %s, error " % (
    PATH,
    PATH,
)
_PANIC = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "


# --- the --config file ---


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            Absent.MISSING,
            'failed to read kubelet config file "%s", error: open %s: no such file or directory' % (PATH, PATH),
        ),
        (
            Absent.DIRECTORY,
            'failed to read kubelet config file "%s", error: read %s: is a directory' % (PATH, PATH),
        ),
        (b"", 'kubelet config file "%s" was empty' % PATH),
        (b"# nothing\n", "failed to decode: Object 'Kind' is missing in '# nothing\n'"),
        (b"null\n", "failed to decode: Object 'Kind' is missing in 'null\n'"),
        (
            b"kind: KubeletConfiguration",
            "failed to decode: Object 'apiVersion' is missing in 'kind: KubeletConfiguration'",
        ),
        (
            b"kind: a\napiVersion: b/c/d\n",
            "failed to decode: unexpected GroupVersion string: b/c/d",
        ),
        (b"a: \xff\n", "failed to decode: yaml: invalid leading UTF-8 octet"),
        (b"a: b: c\n", "failed to decode: yaml: mapping values are not allowed in this context"),
        (b"[]", "failed to decode: %sjson: cannot unmarshal array into Go value of type %s" % (NO_HEAD, STRUCT)),
        (b"hello", "failed to decode: %sjson: cannot unmarshal string into Go value of type %s" % (NO_HEAD, STRUCT)),
        (
            b"kind: 5\napiVersion: 5\n",
            "failed to decode: %sjson: cannot unmarshal number into Go struct field .apiVersion of type string"
            % NO_HEAD,
        ),
        (
            b'{"a": 1,}',
            "failed to decode: %sinvalid character '}' looking for beginning of object key string" % NO_HEAD,
        ),
        (
            b"apiVersion: v1\nkind: Pod\n",
            (
                'failed to decode: no kind "Pod" is registered for version "v1" in scheme'
                ' "pkg/kubelet/apis/config/scheme/scheme.go:33"'
            ),
        ),
        (
            b"apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: KubeletConfiguration\n",
            (
                'failed to decode: no kind "KubeletConfiguration" is registered for version'
                ' "kubelet.config.k8s.io/v1alpha1" in scheme "pkg/kubelet/apis/config/scheme/scheme.go:33"'
            ),
        ),
        (
            b"apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n",
            (
                "failed to cast object to KubeletConfiguration, unexpected type: kubelet.config.k8s.io/v1,"
                " Kind=CredentialProviderConfig"
            ),
        ),
        (
            (HEAD + "cpuManagerPolicy: 5\n").encode(),
            (
                "failed to decode: json: cannot unmarshal number into Go struct field"
                " KubeletConfiguration.cpuManagerPolicy of type string"
            ),
        ),
        ((HEAD + "cpuManagerReconcilePeriod: null\n").encode(), 'failed to decode: time: invalid duration ""'),
    ],
)
def test_a_file_that_is_refused(content: FileState, text: str) -> None:
    assert refusal(content) == (_FILE_CONTEXT, text)


def test_a_relative_path() -> None:
    with pytest.raises(StartError) as error:
        load_configuration(Absent.MISSING, None, 36, takes_all, "etc/../k.yaml", "")
    assert (error.value.context, error.value.text, error.value.where) == (
        (
            "failed to load kubelet config file, path: etc/../k.yaml, error: failed to load Kubelet config file"
            " etc/../k.yaml, error "
        ),
        'failed to read kubelet config file "/k.yaml", error: open /k.yaml: no such file or directory',
        "/k.yaml",
    )


def test_kinds_of_other_versions() -> None:
    record = b"apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: ImagePullIntent\n"
    assert "unexpected type" in refusal(record, minor=33)[1]
    assert "no kind" in refusal(record, minor=32)[1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (Absent.UNREADABLE, "it cannot be read here"),
        (b"k8s\0\x01", "it begins like a file in protobuf"),
        (
            b"apiVersion: kubelet.config.k8s.io/__internal\nkind: KubeletConfiguration\n",
            "its apiVersion is the kubelet's internal one",
        ),
        ((HEAD + "a: " + "[" * 60 + "]" * 60).encode(), "line 3, column 53: more than 50 collections in each other"),
    ],
)
def test_a_file_of_which_nothing_can_be_told(content: FileState, reason: str) -> None:
    with pytest.raises(UnpredictableError) as error:
        load_configuration(content, None, 36, takes_all, PATH, DIRECTORY)
    assert (error.value.reason, error.value.where) == (reason, PATH)


@pytest.mark.parametrize(
    "content",
    [
        (HEAD + "maxPods: 110.0\n").encode(),
        b"\xff\xfe" + (HEAD + "maxPods: 110\n").encode("utf-16-le"),
        b' {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 110}',
        b"Kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nmaxPods: 110\n",
    ],
)
def test_a_file_that_is_read(content: bytes) -> None:
    assert given_values(load_files(content)) == {"maxPods": 110}


def test_what_does_not_count_in_a_file() -> None:
    assert load_files("fooBar: 1\nmaxPods: 1\nmaxPods: 2\n").ignored == (
        Ignored(
            PATH, OddMember(DUPLICATE, "", "", ""), 'strict decoding error: line 5: key "maxPods" already set in map'
        ),
        Ignored(
            PATH,
            OddMember(UNKNOWN, "fooBar", "fooBar", KUBELET_CONFIGURATION),
            'strict decoding error: unknown field "fooBar"',
        ),
    )
    json = (
        b'{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 1, "maxPods": 2}'
    )
    assert load_files(json).ignored == (
        Ignored(
            PATH,
            OddMember(DUPLICATE, "maxPods", "maxPods", KUBELET_CONFIGURATION, "maxPods"),
            'strict decoding error: duplicate field "maxPods"',
        ),
    )


@pytest.mark.parametrize(
    ("text", "hard", "is_default"),
    [
        ("", EVICTION_HARD, True),
        ("evictionHard: null", EVICTION_HARD, True),
        ("evictionHard: {}", {}, False),
        ("evictionHard: {memory.available: 1Gi}", {"memory.available": "1Gi"}, False),
        (
            "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true",
            {**EVICTION_HARD, "memory.available": "1Gi"},
            False,
        ),
    ],
)
def test_the_default_thresholds_of_a_file(text: str, hard: Mapping[str, str], is_default: bool) -> None:
    loaded = load_files(text)
    assert loaded.values["evictionHard"] == hard
    assert ("evictionHard" in loaded.defaulted) == is_default


@pytest.mark.parametrize(
    ("text", "minor", "flag_gates", "restarts", "policy"),
    [
        ("", 34, {}, None, None),
        ("", 35, {}, RESTARTS, "NeverVerifyPreloadedImages"),
        ("featureGates: {KubeletCrashLoopBackOffMax: false}", 35, {}, None, "NeverVerifyPreloadedImages"),
        ("", 34, {"KubeletCrashLoopBackOffMax": True}, RESTARTS, None),
        # The file's gate counts, although the flag's will in the end.
        (
            "featureGates: {KubeletCrashLoopBackOffMax: true}",
            34,
            {"KubeletCrashLoopBackOffMax": False},
            RESTARTS,
            None,
        ),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 0s}\nimagePullCredentialsVerificationPolicy: NeverVerify",
            36,
            {},
            {"maxContainerRestartPeriod": 0},
            "NeverVerify",
        ),
    ],
)
def test_defaults_that_depend_on_a_gate(
    text: str, minor: int, flag_gates: Mapping[str, bool], restarts: Any, policy: str | None
) -> None:
    values = load_files(text, minor=minor, flag_gates=flag_gates).values
    assert values.get("crashLoopBackOff") == restarts
    assert values.get("imagePullCredentialsVerificationPolicy") == policy


def test_without_a_file() -> None:
    loaded = load_files(None, minor=34)
    assert loaded == Loaded(
        {
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "evictionHard": {},
            "readOnlyPort": 10255,
        },
        (),
        frozenset(("authentication", "authorization", "evictionHard", "readOnlyPort")),
    )
    merged = load_files(None, "authentication: {webhook: {cacheTTL: 1m}}\nmaxPods: 5\n", minor=34)
    assert merged.values["authentication"]["anonymous"] == {"enabled": True}
    assert merged.values["authentication"]["webhook"] == {"enabled": False, "cacheTTL": 60 * 10**9}
    assert (merged.values["maxPods"], merged.values["evictionHard"]) == (5, {})


# --- feature gates ---


class _Gates:
    """Refuses a gate X that is off, and keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[Mapping[str, bool]] = []

    def __call__(self, gates: Mapping[str, bool]) -> Finding | None:
        self.given.append(gates)
        if gates.get("X", True):
            return None
        return refused("cannot set feature gate X to false", "the cause", "the remedy", "featureGates.X")


@pytest.mark.parametrize(
    ("text", "drop_ins", "given"),
    [
        ("featureGates: {X: false}", ["featureGates: {X: true}"], [{"F": True, "X": False}]),
        ("", ["featureGates: {X: false}"], [{"F": True}, {"F": True, "X": False}]),
    ],
)
def test_gates_are_checked_before_a_drop_in_is_read(
    text: str, drop_ins: Sequence[str], given: list[Mapping[str, bool]]
) -> None:
    gates = _Gates()
    files = [("1.conf", (HEAD + drop_in).encode()) for drop_in in drop_ins]
    with pytest.raises(StartError) as error:
        load_configuration((HEAD + text).encode(), files, 36, gates, PATH, DIRECTORY, {"F": True})
    assert (error.value.context, error.value.text) == (_PANIC, "cannot set feature gate X to false")
    assert (error.value.cause, error.value.remedy, error.value.where) == ("the cause", "the remedy", "featureGates.X")
    assert gates.given == given


def test_of_two_drop_ins_only_the_merge_is_checked() -> None:
    gates = _Gates()
    files = [
        ("1.conf", (HEAD + "featureGates: {X: false}").encode()),
        ("2.conf", (HEAD + "featureGates: {X: null}").encode()),
    ]
    load_configuration(HEAD.encode(), files, 36, gates, PATH, DIRECTORY)
    assert gates.given == [{}, {}]
