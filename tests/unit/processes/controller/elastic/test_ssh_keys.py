"""Keys of training jobs."""

from cryptography.hazmat.primitives.serialization import (
    load_ssh_private_key,
    load_ssh_public_key,
)

from alnair.processes.controller.elastic.ssh_keys import draw_keys


def test_each_job_has_keys_of_its_own_that_ssh_reads() -> None:
    one, other = draw_keys(), draw_keys()
    assert len({one.private, one.host, other.private, other.host}) == 4
    private = load_ssh_private_key(one.private.encode(), None)
    public = load_ssh_public_key(one.public.encode())
    assert private.public_key() == public
    assert load_ssh_private_key(one.host.encode(), None).public_key() != public
