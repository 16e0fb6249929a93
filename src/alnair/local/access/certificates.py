"""The cluster's own certificate authority: real TLS, and an identity for every process.

Everything is checked at every start and made anew when it is missing, unreadable, near its end, or
not signed by the present CA; so a start that was killed between two files is repaired by the next
one.
"""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from alnair.local.layout import write_atomically

_CA_LIFETIME = dt.timedelta(days=3650)
_LIFETIME = dt.timedelta(days=365)
#: A certificate this near to its end is replaced at the next start.
_MARGIN = dt.timedelta(days=30)
#: Clocks of one machine agree, but they may be set back a little after the certificates were made.
_BACKDATED = dt.timedelta(hours=1)


@dataclass(frozen=True)
class Identity:
    """A client certificate: who a process is to the API server."""

    user: str
    groups: tuple[str, ...] = ()


#: The identities of a cluster, by the name of their kubeconfig.
IDENTITIES: dict[str, Identity] = {
    "admin": Identity("alnair-admin", ("system:masters",)),
    "kube-controller-manager": Identity("system:kube-controller-manager"),
    "kube-scheduler": Identity("system:kube-scheduler"),
    "kwok": Identity("alnair-kwok"),
    "alnair-scheduler": Identity("alnair-scheduler"),
    "alnair-controller": Identity("alnair-controller"),
}


def node_identities(node: str) -> dict[str, Identity]:
    """The further identities that a real node of this name needs."""
    return {
        "kubelet": Identity(f"system:node:{node}", ("system:nodes",)),
        "kube-proxy": Identity("system:kube-proxy"),
        "coredns": Identity("alnair-coredns"),
        "agent": Identity(f"alnair-agent:{node}", ("alnair-agents",)),
        # The API server as a client of the kubelet.
        "kubelet-client": Identity("alnair-kubelet-client"),
    }


REAL_NODE = "real-0"
#: The further identities of a cluster with a real node.
NODE_IDENTITIES = node_identities(REAL_NODE)
_SERVER_NAMES = (
    x509.DNSName("localhost"),
    x509.DNSName("kubernetes"),
    x509.DNSName("kubernetes.default"),
    x509.DNSName("kubernetes.default.svc"),
    x509.DNSName("kubernetes.default.svc.cluster.local"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("10.96.0.1")),
)


@dataclass(frozen=True)
class Pair:
    """A certificate with its key, both in PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Pki:
    """The folder of a cluster's keys and certificates."""

    folder: Path

    @property
    def ca(self) -> Pair:
        """The certificate authority."""
        return self.pair("ca")

    @property
    def server(self) -> Pair:
        """What every server of the cluster shows."""
        return self.pair("server")

    @property
    def service_account_key(self) -> Path:
        """Signs service-account tokens; the API server reads the public half from it, too."""
        return self.folder / "service-account.key"

    def client(self, identity: str) -> Pair:
        """The client certificate of an identity."""
        return self.pair(f"client-{identity}")

    def pair(self, name: str) -> Pair:
        """The files `NAME.crt` and `NAME.key`."""
        return Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")

    def ensure(
        self, now: dt.datetime, kubelet_address: str | None = None, node: str = REAL_NODE
    ) -> None:
        """Makes what is missing or no longer good.

        Args:
            now: The present, with time zone.
            kubelet_address: Of the real node; None: there is none.
            node: The real node's name.
        """
        authority = _read(self.ca)
        if authority is None or not _is_good(*authority, issuer=authority[0], now=now):
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = _sign_authority(key, now)
            authority = (certificate, key)
            _write(self.ca, *authority)
        self._ensure_signed(self.server, authority, _SERVER_NAMES, Identity("alnair-local"), now)
        identities = dict(IDENTITIES)
        if kubelet_address is not None:
            identities |= node_identities(node)
            names = (x509.IPAddress(ipaddress.ip_address(kubelet_address)),)
            kubelet = Identity(f"kubelet {kubelet_address}")
            self._ensure_signed(self.pair("kubelet-server"), authority, names, kubelet, now)
        for name, identity in identities.items():
            self._ensure_signed(self.client(name), authority, (), identity, now)
        if _read_key(self.service_account_key) is None:
            key = ec.generate_private_key(ec.SECP256R1())
            write_atomically(self.service_account_key, _key_pem(key))

    def _ensure_signed(
        self,
        pair: Pair,
        authority: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
        names: tuple[x509.GeneralName, ...],
        identity: Identity,
        now: dt.datetime,
    ) -> None:
        present = _read(pair)
        if (
            present is not None
            and present[0].subject == _subject(identity)
            and _is_good(*present, issuer=authority[0], now=now)
        ):
            return
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(_subject(identity), authority[0].subject, key, now, _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority[1].public_key()),
                critical=False,
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        _write(pair, builder.sign(authority[1], hashes.SHA256()), key)


def _subject(identity: Identity) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in identity.groups),
            x509.NameAttribute(NameOID.COMMON_NAME, identity.user),
        ]
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
    lifetime: dt.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
    )


def _sign_authority(key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alnair-local-ca")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder(name, name, key, now, _CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _is_good(
    certificate: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Certificate,
    now: dt.datetime,
) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return (
        certificate.public_key() == key.public_key()
        and certificate.not_valid_before_utc <= now
        and now + _MARGIN < certificate.not_valid_after_utc
    )


def _read(pair: Pair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None:
    key = _read_key(pair.key)
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    except (OSError, ValueError):
        return None
    return None if key is None else (certificate, key)


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    # The certificate last: a key without its certificate is seen as incomplete and made anew.
    write_atomically(pair.key, _key_pem(key))
    write_atomically(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
