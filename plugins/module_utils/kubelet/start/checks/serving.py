# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a kubelet from serving its API: TLS versions and cipher suites, an address that is none.

Source: cmd/kubelet/app/server.go (UnsecuredDependencies, InitializeTLS); k8s.io/component-base/cli/flag
(ciphersuites_flag.go); Go's crypto/tls.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Iterator, Mapping

from ....golang import quote
from ..finding import Finding, refused

_CONTEXT = "failed to construct kubelet dependencies: "

_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
# Of a key exchange, each with its ciphers; the last are those of TLS 1.3, which have none.
_SUITES = {
    "TLS_RSA_WITH_": (
        "RC4_128_SHA 3DES_EDE_CBC_SHA AES_128_CBC_SHA AES_256_CBC_SHA AES_128_CBC_SHA256 AES_128_GCM_SHA256"
        " AES_256_GCM_SHA384"
    ),
    "TLS_ECDHE_ECDSA_WITH_": (
        "RC4_128_SHA AES_128_CBC_SHA AES_256_CBC_SHA AES_128_CBC_SHA256 AES_128_GCM_SHA256 AES_256_GCM_SHA384"
        " CHACHA20_POLY1305 CHACHA20_POLY1305_SHA256"
    ),
    "TLS_ECDHE_RSA_WITH_": (
        "RC4_128_SHA 3DES_EDE_CBC_SHA AES_128_CBC_SHA AES_256_CBC_SHA AES_128_CBC_SHA256 AES_128_GCM_SHA256"
        " AES_256_GCM_SHA384 CHACHA20_POLY1305 CHACHA20_POLY1305_SHA256"
    ),
    "TLS_": "AES_128_GCM_SHA256 AES_256_GCM_SHA384 CHACHA20_POLY1305_SHA256",
}


def serving_findings(values: Mapping[str, Any]) -> Iterator[Finding]:
    """What the kubelet refuses before it makes its managers."""
    for suite in values.get("tlsCipherSuites") or ():
        if not _is_suite(suite):
            text = "Cipher suite %s not supported or doesn't exist" % suite
            finding = refused(text, "Go has no such cipher suite", "remove it", "tlsCipherSuites")
            yield finding._replace(context=_CONTEXT)
            break
    version = values.get("tlsMinVersion")
    if version and version not in _VERSIONS:
        text = "unknown tls version %s" % quote(version)
        remedy = "write one of %s" % ", ".join(_VERSIONS)
        yield refused(text, "there is no such version", remedy, "tlsMinVersion")._replace(context=_CONTEXT)


def address_findings(values: Mapping[str, Any]) -> Iterator[Finding]:
    """What ends the kubelet once it runs."""
    address = values.get("address")
    if address and values.get("enableServer", True) and not _is_address(address):
        text = "listen tcp: lookup <nil>: no such host"
        cause = "%s is no IP address, so that the kubelet's server cannot listen" % quote(address)
        yield refused(text, cause, "write an address of the node, or 0.0.0.0", "address")


def _is_suite(name: str) -> bool:
    return any(name.startswith(start) and name[len(start) :] in rest.split() for start, rest in _SUITES.items())


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
