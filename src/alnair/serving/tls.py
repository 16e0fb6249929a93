"""The certificate of a process that serves beyond its machine: of files, or its own."""

import asyncio
import datetime as dt
import logging
import os
import platform
import ssl
import tempfile
from pathlib import Path
from typing import Final

import msgspec

#: Seconds between looks whether the files have changed.
LOOK: Final = 10.0
#: Of a certificate that a process makes itself. Nobody verifies it: its end shall break nothing.
_LIFE: Final = dt.timedelta(days=3650)
_BACKDATED: Final = dt.timedelta(hours=1)

_log = logging.getLogger(__name__)


class CertificateError(Exception):
    """There is no certificate to serve with; says why and what to do."""


class CertificateFiles(msgspec.Struct, frozen=True):
    """A chain and its key in PEM, as a Secret of the type kubernetes.io/tls has them."""

    certificate: Path
    key: Path


class ServerTls:
    """The TLS of a server.

    Args:
        files: What it presents, anew when they change; None: a certificate that it makes itself and
            that only its memory has, as the kubelet does.

    Attributes:
        context: For the server.

    Raises:
        CertificateError: The files cannot be used, or none can be made.
    """

    def __init__(self, files: CertificateFiles | None) -> None:
        self._files = files
        self._loaded = _versions(files)
        pem = self_signed(platform.node()) if files is None else _read(files)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Debian's Python leaves it to the machine's configuration of OpenSSL.
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load(self.context, pem)

    async def follow(self) -> None:
        """Take the files over whenever they have changed; ends only by being cancelled."""
        while self._files is not None:
            await asyncio.sleep(LOOK)
            self.look_again()

    def look_again(self) -> None:
        """Take the files over if they have changed; where they cannot be used, all stays."""
        if self._files is None or (now := _versions(self._files)) == self._loaded:
            return
        self._loaded = now
        try:
            pem = _read(self._files)
            # What does not fit together would leave a context without a key.
            _load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), pem)
            _load(self.context, pem)
        except CertificateError as error:
            _log.warning("%s; the certificate before it stays in use", error)
        else:
            _log.info("took over the new certificate of %s", self._files.certificate)


def self_signed(name: str) -> bytes:
    """Return a new key and a certificate of it for this name, in PEM.

    Raises:
        CertificateError: The package that makes them is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ModuleNotFoundError as error:
        raise CertificateError(
            f"{error.name} is missing, which makes certificates: run"
            "  pip install cryptography  or give --tls-cert-file and --tls-private-key-file"
        ) from error
    key = ec.generate_private_key(ec.SECP256R1())
    # A common name has 64 characters at most.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, (name or "alnair")[:64])])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return certificate.public_bytes(pem) + key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _versions(files: CertificateFiles | None) -> tuple[tuple[int, int, int], ...]:
    """What changes when a file does: Secrets are exchanged as a whole, behind a link."""
    found = []
    for path in () if files is None else (files.certificate, files.key):
        try:
            stat = path.stat()
        except OSError:
            found.append((0, 0, 0))
        else:
            found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def _read(files: CertificateFiles) -> bytes:
    try:
        return files.certificate.read_bytes() + b"\n" + files.key.read_bytes()
    except OSError as error:
        raise CertificateError(
            f"{error.filename} cannot be read ({error.strerror}): check --tls-cert-file and"
            " --tls-private-key-file"
        ) from error


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    # The binding of OpenSSL reads files alone. This one is in memory, where there is such a thing:
    # the root of a pod may be read-only, and a key shall not be on a disk.
    number = os.memfd_create("certificate") if hasattr(os, "memfd_create") else None
    try:
        if number is not None:
            os.write(number, pem)
            _load_file(context, f"/proc/self/fd/{number}")
        else:
            with tempfile.NamedTemporaryFile(prefix="alnair-") as file:
                file.write(pem)
                file.flush()
                _load_file(context, file.name)
    finally:
        if number is not None:
            os.close(number)


def _load_file(context: ssl.SSLContext, path: str) -> None:
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(path, password="")
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(
            f"certificate and key cannot be used together: {error}; give PEM files of one pair,"
            " the key without a password"
        ) from error
