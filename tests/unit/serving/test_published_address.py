"""What a process says of where it serves."""

import pytest

from alnair.serving.published_address import published

PATH = "/api/v1/namespaces/alnair-system/pods/https:s-1:9465/proxy"


@pytest.mark.parametrize(
    ("url", "environ", "said"),
    [
        ("http://127.0.0.1:80", {}, "http://127.0.0.1:80"),
        ("https://0.0.0.0:9465", {"POD_NAME": "s-1"}, PATH),
        ("https://[::]:9465", {"POD_NAME": "s-1"}, PATH),
        (
            "http://10.0.0.7:80",
            {"POD_NAME": "s-1", "POD_NAMESPACE": "x"},
            "/api/v1/namespaces/x/pods/http:s-1:80/proxy",
        ),
        ("http://127.0.0.1:80", {"POD_NAME": "s-1"}, ""),
        ("http://[::1]:80", {"POD_NAME": "s-1"}, ""),
    ],
)
def test_a_pod_is_reached_through_the_api_server_unless_it_serves_on_loopback(
    url: str, environ: dict[str, str], said: str
) -> None:
    assert published(url, environ) == said
