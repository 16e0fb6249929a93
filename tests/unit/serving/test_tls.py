"""Certificates of a process: its own, and those of files that change under it."""

import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from alnair.serving.tls import CertificateError, CertificateFiles, ServerTls, self_signed


def name_of(pem: bytes) -> str:
    return x509.load_pem_x509_certificate(pem).subject.rfc4514_string()


async def presented(tls: ServerTls) -> str:
    """The subject of what a server presents to a new connection."""
    runner = web.AppRunner(web.Application())
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls.context)
        await site.start()
        port = runner.addresses[0][1]
        certificate = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
        return name_of(certificate.encode())
    finally:
        await runner.cleanup()


def chain(name: str) -> bytes:
    """A new certificate alone."""
    return self_signed(name).partition(b"-----BEGIN PRIVATE KEY")[0]


def written(folder: Path, name: str) -> CertificateFiles:
    """Files with a new certificate, exchanged as a whole, as the kubelet exchanges a Secret's."""
    pem = self_signed(name)
    cut = pem.index(b"-----BEGIN PRIVATE KEY")
    version = folder / f"..{name}"
    version.mkdir()
    (version / "tls.crt").write_bytes(pem[:cut])
    (version / "tls.key").write_bytes(pem[cut:])
    link = folder / "..next"
    link.symlink_to(version.name)
    link.rename(folder / "..data")
    for file in ("tls.crt", "tls.key"):
        if not (folder / file).is_symlink():
            (folder / file).symlink_to(Path("..data") / file)
    return CertificateFiles(folder / "tls.crt", folder / "tls.key")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files in memory are Linux's")
async def test_without_files_a_process_makes_a_certificate_that_only_its_memory_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A pod may have no folder to write to.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    tls = ServerTls(None)
    assert (await presented(tls)).startswith("CN=")
    assert tls.context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert name_of(self_signed("x" * 100)) == f"CN={'x' * 64}"


async def test_files_that_change_are_taken_over_and_a_pair_that_does_not_fit_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = written(tmp_path, "one")
    tls = ServerTls(files)
    assert await presented(tls) == "CN=one"
    written(tmp_path, "two")
    tls.look_again()
    assert await presented(tls) == "CN=two"
    # Half of a pair: the certificate of another key.
    files.certificate.write_bytes(chain("three"))
    tls.look_again()
    assert "cannot be used together" in caplog.text
    assert await presented(tls) == "CN=two"
    files.key.unlink()
    tls.look_again()
    assert "cannot be read" in caplog.text
    assert await presented(tls) == "CN=two"
    written(tmp_path, "four")
    tls.look_again()
    assert await presented(tls) == "CN=four"


def test_files_that_cannot_be_used_are_told_at_the_start(tmp_path: Path) -> None:
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    with pytest.raises(CertificateError, match=r"tls.crt cannot be read \(No such file"):
        ServerTls(files)
    files.certificate.write_text("no PEM")
    files.key.write_text("no PEM")
    with pytest.raises(CertificateError, match="certificate and key cannot be used together"):
        ServerTls(files)
    files.certificate.write_bytes(chain("one"))
    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    files.key.write_bytes(locked)
    with pytest.raises(CertificateError, match="the key without a password"):
        ServerTls(files)


def test_without_the_package_that_makes_certificates_it_says_what_to_do() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from alnair.serving.tls import CertificateError, ServerTls\n"
        "try: ServerTls(None)\n"
        "except CertificateError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install cryptography  or give --tls-cert-file" in done.stdout
