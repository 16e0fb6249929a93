"""The kubelet's page of cAdvisor in place of control groups, where these cannot be read.

It needs the right `get` on `nodes/metrics`, and nothing that lets one act on the node.
"""

import contextlib
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from alnair.node.cgroups import Proc
from alnair.node.pods.reader import PodsReading
from alnair.profiler.cadvisor import CadvisorPage, read_cadvisor

#: Seconds between requests: the page is not made anew more often; and for one of them.
EVERY: Final = 10.0
PATIENCE: Final = 5.0
_MOST_BYTES: Final = 64 << 20


#: Where the kubelet may show a certificate that it signed itself: nobody else can be there.
_HERE: Final = frozenset({"127.0.0.1", "::1", "localhost"})
#: In the kubelet's folder, the certificate that it made for itself where nobody gave it one.
SELF_SIGNED: Final = Path("pki/kubelet.crt")


class _PageError(Exception):
    """The page cannot be read; says why and what to do."""


class KubeletPage:
    """Reads it; between two requests, and while it cannot be read, it is what was read last.

    Args:
        url: Of the page, such as https://127.0.0.1:10250/metrics/cadvisor.
        proc: This machine's.
        token: File with the token that is shown; read for each request, as it is renewed.
        folder: The kubelet's: what it signed itself lies there, and is believed as such.
        clock: Seconds, monotonic.

    Attributes:
        problem: Why it cannot be read, and what to do; "" if it can.
    """

    def __init__(
        self,
        url: str,
        proc: Proc,
        token: Path,
        folder: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._proc = proc
        self._token = token
        self._clock = clock
        self.problem = ""
        self._page: CadvisorPage | None = None
        self._asked: float | None = None
        self._trust = _trust(url, token.with_name("ca.crt"), folder)

    def read(self) -> PodsReading | None:
        """Return what the page says, with times by our clock; None: it could never be read."""
        now = self._clock()
        if self._asked is None or now - self._asked >= EVERY:
            self._asked = now
            try:
                self._page = self._shifted(read_cadvisor(self._get(), self._place))
                self.problem = ""
            except _PageError as error:
                self.problem = str(error)
        found = self._page
        if found is None:
            return None
        pods = frozenset({key.pod for key in found.containers} | found.networks.keys())
        return PodsReading(now, found.containers, found.networks, pods)

    def close(self) -> None:
        """Nothing is kept open."""

    def _place(self, path: str) -> tuple[str, str]:
        place = self._proc.place(path)
        return place.pod, place.container

    def _shifted(self, page: CadvisorPage) -> CadvisorPage:
        shift = self._clock() - time.time()
        return CadvisorPage(
            {k: msgspec.structs.replace(v, at=v.at + shift) for k, v in page.containers.items()},
            {k: msgspec.structs.replace(v, at=v.at + shift) for k, v in page.networks.items()},
        )

    def _get(self) -> bytes:
        headers = {}
        with contextlib.suppress(OSError):  # without, it says itself whether nobody may ask
            headers["Authorization"] = f"Bearer {self._token.read_text().strip()}"
        request = urllib.request.Request(self._url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=self._trust) as answer:
                found: bytes = answer.read(_MOST_BYTES)
                return found
        except urllib.error.HTTPError as error:
            hint = (
                "give the agent's account the right get on nodes/metrics"
                if error.code in (401, 403)
                else "is it the kubelet's page of cAdvisor?"
            )
            raise _PageError(f"{self._url}: {error.code} {error.reason}: {hint}") from error
        except OSError as error:
            hint = "is the kubelet there?"
            if isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
                hint = (
                    "its certificate is neither the one of the kubelet's folder nor of"
                    f" {self._token.with_name('ca.crt')}"
                )
            raise _PageError(f"{self._url}: {error}; {hint}") from error


def _trust(url: str, authority: Path, folder: Path | None) -> ssl.SSLContext:
    """Return what is believed: what is on this machine anyway, or was signed for it."""
    own = folder / SELF_SIGNED if folder is not None else None
    if own is not None and own.exists():
        # It names no address: whoever has its key is the kubelet.
        trust = ssl.create_default_context(cafile=str(own))
        trust.check_hostname = False
        return trust
    trust = ssl.create_default_context(cafile=str(authority) if authority.exists() else None)
    if urlsplit(url).hostname in _HERE:
        trust.check_hostname = False
        trust.verify_mode = ssl.CERT_NONE
    return trust
