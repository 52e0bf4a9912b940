"""Certificates of a private authority, for servers that are written by `bus.server.cluster_files`. Needs `cryptography`.

<folder>/ca.pem    what clients and servers trust
<folder>/ca.key    signs more servers later; needed on none of them
"""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bus.server.keys import write_private

_DAY = datetime.timedelta(days=1)
_AUTHORITY_DAYS = 3650
_SERVER_DAYS = 825
"""The longest that common verifiers accept."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs the certificates of one cluster's servers."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def of(cls, folder: Path, now: datetime.datetime) -> "Authority":
        """The authority in this folder, made when there is none."""
        certificate_file, key_file = folder / "ca.pem", folder / "ca.key"
        if certificate_file.exists() and key_file.exists():
            key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            return cls(x509.load_pem_x509_certificate(certificate_file.read_bytes()), key)
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("Millrace cluster authority")
        certificate = (
            _builder(name, name, key.public_key(), now, _AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(key_file, _pem(key))
        write_private(certificate_file, certificate.public_bytes(serialization.Encoding.PEM))
        return cls(certificate, key)

    def issue(self, host: str, folder: Path, now: datetime.datetime) -> None:
        """Writes `server.key`, `ca.pem`, then `server.pem` for a host that serves clients and is a client of its peers."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder(_name(host), self.certificate.subject, key.public_key(), now, _SERVER_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
            )
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        write_private(folder / "server.key", _pem(key))
        write_private(folder / "ca.pem", self.certificate.public_bytes(serialization.Encoding.PEM))
        write_private(folder / "server.pem", certificate.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)  # clocks differ
        .not_valid_after(now + days * _DAY)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
