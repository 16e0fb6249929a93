"""Which job is meant, by what a real API server answers where nobody serves the kind."""

import pytest

from alnair.kube.errors import NotFound
from alnair.live.training.finding import JobError, is_installed


def test_a_cluster_without_our_kinds_is_told_from_a_job_that_is_not_there() -> None:
    is_installed(NotFound(404, "NotFound", 'ElasticTorchJob "x" not found'))
    with pytest.raises(JobError, match="install Alnair there"):
        is_installed(NotFound(404, "", "404 page not found"))
