# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.surroundings import (
    address_findings,
    serving_findings,
)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ({}, []),
        ({"tlsCipherSuites": [], "tlsMinVersion": ""}, []),
        ({"tlsMinVersion": "VersionTLS10"}, []),
        ({"tlsMinVersion": "VersionTLS13"}, []),
        ({"tlsMinVersion": "foo"}, ['unknown tls version "foo"']),
        ({"tlsMinVersion": "versiontls13"}, ['unknown tls version "versiontls13"']),
        ({"tlsCipherSuites": ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]}, []),
        ({"tlsCipherSuites": ["TLS_RSA_WITH_RC4_128_SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]}, []),
        # The kubelet names the first one.
        ({"tlsCipherSuites": ["foo", "bar"]}, ["Cipher suite foo not supported or doesn't exist"]),
        ({"tlsCipherSuites": ["TLS_"]}, ["Cipher suite TLS_ not supported or doesn't exist"]),
        (
            {"tlsCipherSuites": ["TLS_AES_128_CBC_SHA"], "tlsMinVersion": "1.2"},
            ["Cipher suite TLS_AES_128_CBC_SHA not supported or doesn't exist", 'unknown tls version "1.2"'],
        ),
    ],
)
def test_tls(values: dict[str, Any], texts: list[str]) -> None:
    findings = list(serving_findings(values))
    assert [finding.text for finding in findings] == texts
    assert {finding.context for finding in findings} <= {"failed to construct kubelet dependencies: "}
    assert all(finding.fatal and finding.cause and finding.remedy and finding.where in values for finding in findings)


@pytest.mark.parametrize(
    ("values", "is_refused"),
    [
        ({}, False),
        ({"address": ""}, False),
        ({"address": "0.0.0.0"}, False),
        ({"address": "::"}, False),
        ({"address": "x"}, True),
        ({"address": "10.0.0.1:10250"}, True),
        ({"address": "x", "enableServer": False}, False),
    ],
)
def test_the_address(values: dict[str, Any], is_refused: bool) -> None:
    found = [finding.text for finding in address_findings(values)]
    assert found == ["listen tcp: lookup <nil>: no such host"] * is_refused
