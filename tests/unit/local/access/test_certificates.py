"""The cluster's keys and certificates are made once, and anew when something is wrong with them."""

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from alnair.local.access.certificates import IDENTITIES, Pki

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    found = Pki(tmp_path / "pki")
    found.ensure(NOW)
    return found


def contents(pki: Pki) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(pki.folder.iterdir())}


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_good_files_stay_as_they_are(pki: Pki) -> None:
    before = contents(pki)
    pki.ensure(NOW + dt.timedelta(days=300))
    assert contents(pki) == before


def test_every_identity_has_its_user_and_groups(pki: Pki) -> None:
    for name, identity in IDENTITIES.items():
        subject = certificate(pki.client(name).certificate).subject
        names = {part.oid._name: part.value for part in subject}
        assert names["commonName"] == identity.user
        assert names.get("organizationName") == (identity.groups[0] if identity.groups else None)


def test_only_the_administrator_is_a_master() -> None:
    masters = [name for name, one in IDENTITIES.items() if "system:masters" in one.groups]
    assert masters == ["admin"]


def test_all_are_signed_by_the_authority_and_fit_their_keys(pki: Pki) -> None:
    authority = certificate(pki.ca.certificate)
    for pair in (pki.server, *(pki.client(name) for name in IDENTITIES)):
        certificate(pair.certificate).verify_directly_issued_by(authority)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_cert_chain(pair.certificate, pair.key)


def test_the_server_is_known_by_its_loopback_names(pki: Pki) -> None:
    extension = certificate(pki.server.certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert "localhost" in extension.value.get_values_for_type(x509.DNSName)
    addresses = [str(one) for one in extension.value.get_values_for_type(x509.IPAddress)]
    assert "127.0.0.1" in addresses


@pytest.mark.parametrize("damage", [None, b"", b"-----BEGIN CERTIFICATE-----\nnonsense"])
@pytest.mark.parametrize("file", ["server.crt", "server.key", "client-admin.crt"])
def test_a_damaged_certificate_alone_is_replaced(pki: Pki, file: str, damage: bytes | None) -> None:
    before = contents(pki)
    if damage is None:
        (pki.folder / file).unlink()
    else:
        (pki.folder / file).write_bytes(damage)
    pki.ensure(NOW)
    after = contents(pki)
    changed = {name for name in before if after[name] != before[name]}
    stem = file.rsplit(".", 1)[0]
    assert changed == {f"{stem}.crt", f"{stem}.key"}


def test_a_lost_authority_replaces_all_that_it_signed(pki: Pki) -> None:
    before = contents(pki)
    pki.ca.key.unlink()
    pki.ensure(NOW)
    after = contents(pki)
    assert {name for name in before if after[name] == before[name]} == {"service-account.key"}
    test_all_are_signed_by_the_authority_and_fit_their_keys(pki)


def test_a_key_of_another_certificate_is_noticed(pki: Pki) -> None:
    pki.server.key.write_bytes(pki.client("kwok").key.read_bytes())
    pki.ensure(NOW)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(pki.server.certificate, pki.server.key)


def test_certificates_near_their_end_are_renewed_under_the_same_authority(pki: Pki) -> None:
    before = contents(pki)
    later = NOW + dt.timedelta(days=350)
    pki.ensure(later)
    after = contents(pki)
    assert after["ca.crt"] == before["ca.crt"]
    assert after["server.crt"] != before["server.crt"]
    assert certificate(pki.server.certificate).not_valid_after_utc > later


def test_keys_are_the_users_alone(pki: Pki) -> None:
    keys = list(pki.folder.glob("*.key"))
    assert len(keys) == len(IDENTITIES) + 3
    assert [path.name for path in keys if path.stat().st_mode & 0o077] == []


def test_a_real_nodes_kubelet_has_a_certificate_for_its_address(pki: Pki) -> None:
    before = contents(pki)
    pki.ensure(NOW, "10.213.0.2")
    after = contents(pki)
    assert {name: after[name] for name in before} == before
    names = certificate(pki.pair("kubelet-server").certificate).extensions
    alternatives = names.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one) for one in alternatives.get_values_for_type(x509.IPAddress)] == ["10.213.0.2"]
    pki.ensure(NOW, "10.213.1.2")
    assert contents(pki)["kubelet-server.crt"] != after["kubelet-server.crt"]
    assert contents(pki)["client-kubelet.crt"] == after["client-kubelet.crt"]
