# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/redacted_words.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.effective import read_flags
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redacted_words import (
    said_redacted,
    secrets_in,
    words_redacted,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.command_line import read_command
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--manifest-url-header=Authorization:hunter2"], ["--manifest-url-header=Authorization:redacted"]),
        (["--manifest-url-header", "Authorization:hunter2"], ["--manifest-url-header", "Authorization:redacted"]),
        (["--manifest_url_header=Authorization:hunter2"], ["--manifest_url_header=Authorization:redacted"]),
        (["--manifest-url-header=A:hunter2,B:hunter2"], ["--manifest-url-header=A:redacted,B:redacted"]),
        (["--manifest-url-header=hunter2"], ["--manifest-url-header=redacted"]),
        (["--manifest-url=https://a:hunter2@b/?token=hunter2"], ["--manifest-url=https://redacted@b/redacted"]),
        (["--token=hunter2", "--v=2"], ["--token=redacted", "--v=2"]),
        (["--token", "hunter2", "--config", "/a"], ["--token", "redacted", "--config", "/a"]),
        # A value that looks like a flag.
        (["--token", "-hunter2", "--config=/a"], ["--token", "redacted", "--config=/a"]),
        (["-thunter2", "-t", "hunter2", "-t=hunter2"], ["-redacted", "-t", "redacted", "-t=redacted"]),
        (["--vendor-switch", "--vendor-token", "hunter2"], ["--vendor-switch", "--vendor-token", "redacted"]),
        (["--vendor-switch", "--vendor-key", "hunter2"], ["--vendor-switch", "--vendor-key", "redacted"]),
        (["--vendor-key", "hunter2", "hunter2"], ["--vendor-key", "redacted", "redacted"]),
        (["-token", "hunter2"], ["-redacted", "redacted"]),
        (["hunter2"], ["redacted"]),
        (["--vendor-key", "hunter2=="], ["--vendor-key", "redacted"]),
        (["--manifest_url", "https://b/hunter2"], ["--manifest_url", "https://b/redacted"]),
        (["--image-service-endpoint=tcp://a:hunter2@b"], ["--image-service-endpoint=tcp://redacted@b"]),
        (["--container-runtime-endpoint", "tcp://b?hunter2"], ["--container-runtime-endpoint", "tcp://b?redacted"]),
        (["--kubelet-arg=token=hunter2", "--kubelet-arg", "token=hunter2"], None),
        (["--kubelet-arg=max-pods=110"], ["--kubelet-arg=max-pods=110"]),
        (["--kubelet-arg", "v=2", "--kubelet-arg=--v=2"], ["--kubelet-arg", "v=2", "--kubelet-arg=v=2"]),
        (["--", "x", "--token=hunter2"], ["--", "redacted", "redacted"]),
    ],
)
def test_what_may_be_secret_is_left_out(words: list[str], expected: list[str] | None) -> None:
    kept = words_redacted(["/usr/bin/kubelet", *words])
    assert SECRET not in " ".join(kept)
    assert expected is None or kept == ["/usr/bin/kubelet", *expected]
    assert len(kept) == len(words) + 1


@pytest.mark.parametrize("name", [name for name, kubelet in KUBELETS.items() if kubelet.command_line])
def test_what_is_read_stays(name: str) -> None:
    words = KUBELETS[name].command_line.split()
    kept = words_redacted(words)
    assert read_flags(kept, "x") == read_flags(words, "x")
    assert kept == words


@pytest.mark.parametrize(
    "words",
    [
        ["--cpu-manager-reconcile-period", "-5s"],
        ["--cpu-manager-reconcile-period=-5s"],
        ["-cpu-manager-policy=static"],
        ["--fail-swap-on", "false"],
        ["--v", "2", "-v", "4"],
    ],
)
def test_what_a_kubelet_refuses_stays(words: list[str]) -> None:
    """Its refusal quotes it."""
    assert words_redacted(words, has_program=False) == words


def test_a_kubelet_starts_with_what_stays() -> None:
    """It is read again after it was stopped, and is not refused then for what was left out."""
    words = ["--manifest-url-header=Authorization:hunter2", "--manifest-url-header", "X-Token:hunter2"]
    words.append("--manifest-url=https://a:hunter2@b/")
    kept = words_redacted(words, has_program=False)
    assert SECRET not in " ".join(kept)
    assert read_command(kept, 36).values["manifest-url-header"] == {
        "Authorization": ["redacted"],
        "X-Token": ["redacted"],
    }


@pytest.mark.parametrize(
    ("words", "said", "expected"),
    [
        (["--password=se=cret"], "unknown flag: --password=se=cret, why", "unknown flag: --password=redacted, why"),
        (["--token", "other-one"], 'invalid argument "other-one", "magic"', 'invalid argument "redacted", "magic"'),
        (["--manifest-url-header=a:x,b:hunter2"], "malformed: b:hunter2", "malformed: b:redacted"),
        (["--manifest-url-header", "A:Bearer hunter2"], "map[A:[Bearer hunter2]]", "map[A:[redacted]]"),
        (["--manifest-url-header", "A:Bearer hunter2"], "sent hunter2 to it", "sent redacted to it"),
        (["--manifest-url=https://h/hunter2"], "Get https://h/hunter2: why", "Get https://h/redacted: why"),
        (["--vendor-key", "a=hunter2"], "cannot use key a=hunter2", "cannot use key a=redacted"),
        (["--vendor-key", "hunter2=="], "cannot use key hunter2==", "cannot use key redacted"),
        (['--vendor-json={"k": "hunter2"}'], 'err="invalid {\\"k\\": \\"hunter2\\"}"', 'err="invalid redacted"'),
        (["--vendor-switch", "--vendor-key", "hunter2"], "found hunter2.", "found redacted."),
        ([], "FLAG: --vendor-key=hunter2", "FLAG: --vendor-key=redacted"),
        ([], 'FLAG: --manifest-url="https://h/hunter2"', 'FLAG: --manifest-url="redacted"'),
        # A short value would be found everywhere, and so would a part of a word.
        (["--vendor-level", "3"], "line 3, column 31", "line 3, column 31"),
        (["--vendor-ca=/run/ca.crt", "--client-ca-file=/run/ca.crt"], "no file: /run/ca.crt", "no file: /run/ca.crt"),
        (["--vendor-mode", "hidden"], "the hiddenPodPath is hidden", "the hiddenPodPath is redacted"),
        (["--config=/etc/x", "--v=2"], 'FLAG: --config="/etc/x" --v=2', 'FLAG: --config="/etc/x" --v=2'),
        (["--cpu-manager-policy=magic"], 'unknown policy: "magic"', 'unknown policy: "magic"'),
    ],
)
def test_what_a_kubelet_says_has_no_secret_of_its_words(words: list[str], said: str, expected: str) -> None:
    assert said_redacted(said, words) == expected
    assert said_redacted(expected, words) == expected


def test_what_a_kubelet_says_has_no_secret_of_its_configuration() -> None:
    values = {
        "staticPodURL": "https://h/hunter2?x",
        "staticPodURLHeader": {"X": ["Bearer hunter3", "hunter4"]},
        "authentication": {"webhook": {"vendorToken": "hunter5"}},
        "maxPods": 110,
        "tlsPrivateKeyFile": "/pki/kubelet.key",
    }
    said = "maxPods: 110, /pki/kubelet.key, https://h/hunter2, hunter3, hunter4, hunter5 and the Bearer"
    assert said_redacted(said, (), secrets_in(values)) == (
        "maxPods: 110, /pki/kubelet.key, https://h/redacted, redacted, redacted, redacted and the Bearer"
    )


LETTERS = st.text(alphabet="ab-=:,/@?# \"'\\é\n", max_size=8)


@given(st.lists(st.sampled_from(["--token", "--vendor", "--v", "-t", "--manifest-url-header", "--", "k"]) | LETTERS))
def test_words_that_are_redacted_stay_as_they_are(words: list[str]) -> None:
    once = words_redacted(words, has_program=False)
    assert len(once) == len(words)
    assert words_redacted(once, has_program=False) == once
