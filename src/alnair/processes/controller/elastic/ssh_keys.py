"""Keys that are drawn for one training job: whoever reads those of another gains nothing."""

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from alnair.elastic.supporting_objects import Keys


def draw_keys() -> Keys:
    """Return new keys: of the launcher, which workers accept, and of the workers' ssh servers."""
    launcher, host = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public = launcher.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return Keys(private=_written(launcher), public=public.decode() + "\n", host=_written(host))


def _written(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    ).decode()
