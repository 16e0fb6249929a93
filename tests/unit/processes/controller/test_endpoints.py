"""The controller's pages."""

from aiohttp.test_utils import TestClient, TestServer

from alnair.processes.controller.endpoints import NO_HISTORY, application, without_history


async def test_who_asks_for_a_history_that_is_not_kept_is_told_so() -> None:
    app = application(lambda: True, lambda: ())
    without_history(app)
    async with TestClient(TestServer(app)) as client:
        for path in ("/v1/history/jobs", "/v1/history/jobs/default/Pod/a"):
            answer = await client.get(path)
            assert (answer.status, await answer.text()) == (404, NO_HISTORY)
        assert (await client.get("/readyz")).status == 200
