# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An authority of certificates, for one cluster."""

from __future__ import annotations

import ipaddress
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# The clocks of virtual machines may go wrong by hours.
_TOLERANCE = timedelta(days=1)
_VALID = timedelta(days=30)


class Pair(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, path: Path) -> None:
        """Write them to path.crt and path.key."""
        path.with_suffix(".crt").write_bytes(self.certificate)
        path.with_suffix(".key").touch(mode=0o600)
        path.with_suffix(".key").write_bytes(self.key)

    @classmethod
    def read(cls, path: Path) -> Pair:
        """Return those of path.crt and path.key."""
        return cls(path.with_suffix(".crt").read_bytes(), path.with_suffix(".key").read_bytes())


class Authority:
    """Signs certificates."""

    def __init__(self, pair: Pair | None = None) -> None:
        """Take an authority that was made before, or make a new one."""
        if pair is None:
            # Two authorities of one name are taken for each other.
            name, key = _name("tests %d" % time.time_ns(), ()), ec.generate_private_key(ec.SECP256R1())
            pair = _signed(name, key, name, key, authority=True)
        self.pair = pair
        self._name = x509.load_pem_x509_certificate(pair.certificate).subject
        self._key = serialization.load_pem_private_key(pair.key, password=None)

    def issue(self, user: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> Pair:
        """Return a certificate with which a user of some groups or a server under some names and addresses is known."""
        assert isinstance(self._key, ec.EllipticCurvePrivateKey)
        return _signed(_name(user, groups), ec.generate_private_key(ec.SECP256R1()), self._name, self._key, hosts)


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str] = (),
    authority: bool = False,
) -> Pair:
    now = datetime.now(timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _TOLERANCE)
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    return Pair(
        builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ),
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
