"""Where an API server is and how to reach it: address, trust, proxy, identity.

A value; nothing is opened here.
"""

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from alnair.kube.access.credentials import Certificate, Credentials, Fixed
from alnair.kube.errors import ConfigError


@dataclass(frozen=True)
class Connection:
    """Everything a client needs to talk to one API server.

    Attributes:
        server: Root address without a slash at the end, such as "https://127.0.0.1:6443".
        credentials: Who we are, now.
        authorities: PEM certificates that are trusted, None for the system's.
        insecure: Do not verify the server's certificate.
        tls_server_name: Name to verify the certificate against, None for the host of `server`.
        proxy: Address of an HTTP proxy, None for none.
        headers: Sent with each request (impersonation).
        namespace: The context's namespace.
        context: Name of the context, "in-cluster" inside a pod.
        source: Where all this was read, for messages.
    """

    server: str
    credentials: Credentials = field(default_factory=Fixed)
    authorities: bytes | None = None
    insecure: bool = False
    tls_server_name: str | None = None
    proxy: str | None = None
    headers: Mapping[str, str | list[str]] = field(default_factory=dict)
    namespace: str = "default"
    context: str = ""
    source: str = ""

    def tls(self) -> ssl.SSLContext | None:
        """Make the TLS context, None for a plain http address.

        Raises:
            ConfigError: The authorities are no PEM certificates.
        """
        if self.server.startswith("http://"):
            return None
        try:
            authorities = None if self.authorities is None else self.authorities.decode("ascii")
            context = ssl.create_default_context(cadata=authorities)
        except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
            raise ConfigError(
                self.source, "certificate-authority", f"holds no usable PEM certificate: {error}"
            ) from error
        # Python 3.13 began to refuse CAs without key identifiers, as many clusters made theirs;
        # client-go accepts them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def present(self, context: ssl.SSLContext, certificate: Certificate) -> None:
        """Make new connections of a TLS context present a client certificate.

        Raises:
            ConfigError: The certificate or key is no PEM, or they do not belong together.
        """
        # OpenSSL's Python binding only reads files; the folder is ours alone (0700) and gone after
        # the call.
        with tempfile.TemporaryDirectory(prefix="alnair-") as folder:
            chain, key = Path(folder, "chain.pem"), Path(folder, "key.pem")
            chain.write_bytes(certificate.chain)
            key.write_bytes(certificate.key)
            try:
                context.load_cert_chain(chain, key)
            except ssl.SSLError as error:
                raise ConfigError(
                    self.source,
                    "client-certificate",
                    f"certificate and key cannot be used together: {error}",
                ) from error
