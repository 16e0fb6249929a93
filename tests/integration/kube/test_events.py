"""Events in a real cluster, as `kubectl describe` finds them."""

import asyncio
from collections.abc import Awaitable, Callable

from alnair.kube.client import Client
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.kube.resources import EVENTS


async def test_a_burst_is_written_whole_and_repeats_are_counted(
    client: Client, make_namespace: Callable[[], Awaitable[str]]
) -> None:
    namespace = await make_namespace()
    recorder = EventRecorder(client, "alnair-test", instance="here", capacity=1000)
    task = asyncio.create_task(recorder.run())
    pods = [ObjectReference("Pod", f"p{number}", namespace, f"u{number}") for number in range(1000)]
    for pod in pods:
        recorder.record(pod, "Scheduled", f"placed {pod.name}")
    assert await recorder.drain(60) == 0
    for _ in range(3):
        recorder.record(pods[7], "Scheduled", "placed p7")
        assert await recorder.drain(10) == 0
    assert (recorder.dropped, recorder.refused) == (0, 0)
    task.cancel()
    await asyncio.wait([task])

    selector = "involvedObject.kind=Pod,involvedObject.name=p7,involvedObject.uid=u7"
    found = (await client.list(EVENTS, namespace, field_selector=selector)).items
    assert [(event["reason"], event["count"]) for event in found] == [("Scheduled", 4)]
    assert found[0]["source"] == {"component": "alnair-test", "host": "here"}
    everything = await client.list(EVENTS, namespace)
    assert len(everything.items) == 1000
