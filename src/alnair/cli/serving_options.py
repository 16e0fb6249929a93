"""The options of processes that serve beyond their machine: TLS, and who is let in."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from alnair.serving.tls import CertificateFiles

SecureServing = Annotated[
    bool | None,
    typer.Option(
        "--secure-serving",
        help="Serve over TLS; past the health, let in only whom the API server allows (TokenReview,"
        " SubjectAccessReview). For pods.",
    ),
]
TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert-file", metavar="FILE", help="Its certificate, in PEM; default one of its own."
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-private-key-file", metavar="FILE", help="The key of the certificate."),
]


def certificate_files(
    secure: bool, certificate: Path | None, key: Path | None
) -> "CertificateFiles | None":
    """Return the files; None: the process makes its own certificate, or speaks no TLS.

    Raises:
        typer.BadParameter: One is missing, or they are given for nothing.
    """
    from alnair.serving.tls import CertificateFiles

    if certificate is None and key is None:
        return None
    if not secure:
        raise typer.BadParameter(
            "it is of --secure-serving: add that", param_hint="--tls-cert-file"
        )
    if certificate is None or key is None:
        raise typer.BadParameter(
            "give both, --tls-cert-file and --tls-private-key-file", param_hint="--tls-cert-file"
        )
    return CertificateFiles(certificate, key)
