# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a program says keeps its reason and loses its secrets."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.secrets import text_redacted, texts_redacted
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

CHECKOUT = Path(__file__).parents[5]
VECTORS = CHECKOUT / "tests/conformance/vectors"
SECRET = "hunter2/+="
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"

# A text, and what is shown of it: <> stands for the secret and for what takes its place.
TEXTS = [
    # Flags and headers, in Go's quotes, once and twice.
    'FLAG: --manifest-url-header="<>"',
    "unknown flag: --vendor-token=<>",
    "unknown flag: --vendor-token <> --v=2",
    'invalid argument "Authorization=<>" for "--manifest-url-header" flag: malformed pair, expect string:string',
    'err="invalid argument \\"Authorization:<>\\" for \\"--manifest-url-header\\" flag"',
    '"command failed" err="invalid argument \\"--password=<>\\": why" node="n"',
    '{"err":"invalid argument \\"Authorization=<>\\" for a flag","ts":1}',
    "map[Authorization:<>] cannot be sent",
    "Authorization: <>\nHost: x",
    # Addresses.
    'Get "https://<>@h:6443/x": dial tcp: connection refused',
    'err="Get \\"https://h/x?<>\\": dial tcp: connection refused"',
    "tcp://<>@h:1 does not answer",
    # Variables.
    "K3S_TOKEN=<> k3s agent",
    "export AWS_SECRET_ACCESS_KEY='<>'; run",
    "https_proxy=<> curl",
    # YAML and JSON.
    "line 3: password: <>",
    "kind: X\npassword: <>\nport: 1",
    "token: |\n  <>\nport: 1",
    "{user: me, password: <>, port: 1}",
    '{"auths": {"x": {"auth": "<>", "token":"<>"}}, "port": 1}',
    "yaml: unknown anchor '<>' referenced",
    "cannot decode !!str `<>` as a !!int",
    # What is known by its form.
    "the answer was Bearer <>, which is refused",
]


def secrets_in_place(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text with a secret, and with what takes its place."""
    for secret in (SECRET, "Basic " + SECRET) if "Authorization" in text else (SECRET,):
        of_map = "[%s]" % secret if text.startswith("map[") else secret
        of_map = "%s\n  %s" % (secret, secret) if "|" in text else of_map
        yield text.replace("<>", of_map), text.replace("|\n  <>", "<>").replace("<>", "redacted")


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_goes_and_the_rest_stays(text: str) -> None:
    for said, expected in secrets_in_place(text):
        assert text_redacted(said) == expected
        assert text_redacted(expected) == expected


@pytest.mark.parametrize(
    "secret",
    [
        JWT,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIB+/\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\\nMIIB+/\\n-----END PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\nMIIB+/",
        "K10%s::server:hunter2" % ("0a" * 32),
        "abc123.0123456789abcdef",
        "AKIA" + "A1B2" * 4,
        "ghp_" + "a1B2" * 9,
    ],
)
def test_a_secret_is_known_by_its_form(secret: str) -> None:
    assert text_redacted("it said %s" % secret) == "it said redacted"
    assert secret.startswith("-----") or text_redacted("it said %s, why" % secret) == "it said redacted, why"


@pytest.mark.parametrize(
    "text",
    [
        "invalid token: signature is invalid",
        "failed to get secret: secrets are forbidden",
        "edge: shop/istio-proxy: 3 CPUs are not free",
        "kube-proxy: E1234 is no reason",
        "error: token-refresher: 3 CPUs are not free",
        "give: pod uid, container token: CPUs 1-3",
        "authorization: unknown mode X",
        "flag --vendor-token is not known",
        "flag needs an argument: --token\nUsage:",
        'invalid argument "x" for "--manifest-url-header" flag',
        "imagePullCredentialsVerificationPolicy: Invalid value: 3",
        "--feature-gates=KubeletEnsureSecretPulledImages=true",
        "--authentication-token-webhook=true --token=",
        "--bootstrap-kubeconfig=/etc/x --token-file=/etc/y",
        "host01.internalnetwork1 does not answer at unix:///run/x@y or https://host:6443/x",
        "Basic authentication, Bearer tokens and the Bearer of news",
    ],
)
def test_a_reason_stays(text: str) -> None:
    assert text_redacted(text) == text


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_of(inner)


def test_what_kubelets_refuse_with_stays_readable() -> None:
    """All that kubelets said in the vectors, and all refusals that are explained: only what they quote goes."""
    said = set(texts_of(json.loads((CHECKOUT / "plugins/plugin_utils/refusals.json").read_text("utf-8"))))
    for path in VECTORS.glob("*start-*.xz"):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            said.update(text for line in lines for text in texts_of(json.loads(line)))
    assert len(said) > 3000
    changed = {text: text_redacted(text) for text in said if text_redacted(text) != text}
    assert all("anchor '" in text for text in changed)
    assert len(changed) == 3


def test_plain_data_loses_what_its_keys_say() -> None:
    found = {"msg": "token=x", "kubeconfig": {"users": [{"user": {"token": "x", "exec": None}}]}, "kind": "x", "n": 1}
    assert texts_redacted(found) == {
        "msg": "token=redacted",
        "kubeconfig": {"users": [{"user": {"token": "redacted", "exec": None}}]},
        "kind": "x",
        "n": 1,
    }


PIECES = [
    "token",
    "password",
    "--token",
    "--x",
    "Authorization",
    "Bearer ",
    "Basic ",
    "a://",
    "u:p@h",
    "?",
    "#",
    "{",
    "}",
]
PIECES += [
    "[",
    "]",
    "map[",
    '"',
    "'",
    '\\"',
    "\\",
    "=",
    ":",
    ": ",
    "=>",
    " ",
    "\n",
    "  ",
    "|",
    ">",
    ",",
    ";",
    "-",
    "- ",
]
PIECES += [
    "-----BEGIN A KEY-----",
    "-----END A KEY-----",
    JWT,
    "K10" + "0" * 20 + "::",
    "anchor '",
    "`",
    "x",
    "is",
    "Aa1",
]
PIECES += ["cannot decode !!str `", "redacted", "abc123.0123456789abcdef", ".", "/", "@"]


@settings(max_examples=examples(5000))
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_what_is_redacted_once_stays_as_it_is(text: str) -> None:
    once = text_redacted(text)
    assert text_redacted(once) == once
