"""The figures of whole GPUs."""

from alnair.node.gpu_looks import GpuLook
from alnair.node.health import GpusHealth
from alnair.node.load import GpusLoad
from alnair.node.nvml import Usage
from alnair.processes.agent.gpu_metrics import gpu_metrics
from alnair.serving.exposition import text_of


def test_a_gpu_that_is_lost_is_unhealthy_and_has_no_use() -> None:
    health, load = GpusHealth(lambda: None), GpusLoad({})
    xids = (("b", 79), ("a", 31), ("a", 31))
    seen = GpuLook(0.0, 1, {"a": Usage(40.0, 1 << 30)}, {"b": "GPU is lost"}, xids)
    health.take(seen)
    load.take(seen)
    lines = text_of(gpu_metrics(health, load)).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'alnair_gpu_healthy{gpu="a"} 1.0',
        'alnair_gpu_healthy{gpu="b"} 0.0',
        'alnair_gpu_xid_errors_total{gpu="a",xid="31"} 2.0',
        'alnair_gpu_xid_errors_total{gpu="b",xid="79"} 1.0',
        'alnair_gpu_late{gpu="a"} 0.0',
        'alnair_gpu_late{gpu="b"} 0.0',
        "alnair_gpu_looks_skipped_total 0.0",
        'alnair_gpu_unmapped_processes{gpu="a"} 0.0',
        'alnair_gpu_utilization_ratio{gpu="a"} 0.4',
        'alnair_gpu_memory_used_bytes{gpu="a"} 1.073741824e+09',
    ]


def test_what_hampers_the_looks_is_told() -> None:
    health, load = GpusHealth(lambda: None), GpusLoad({})
    usages = {"a": Usage(40.0, 1 << 30), "b": Usage(0.0, 0)}
    hampered = GpuLook(
        1.0, 1, {"a": usages["a"]}, {}, late=frozenset({"b"}), unmapped={"a": 2}, skipped=3
    )
    for seen in (GpuLook(0.0, 1, usages, {}), hampered):
        health.take(seen)
        load.take(seen)
    lines = text_of(gpu_metrics(health, load)).splitlines()
    assert {
        'alnair_gpu_healthy{gpu="b"} 1.0',
        'alnair_gpu_late{gpu="a"} 0.0',
        'alnair_gpu_late{gpu="b"} 1.0',
        "alnair_gpu_looks_skipped_total 3.0",
        'alnair_gpu_unmapped_processes{gpu="a"} 2.0',
    } <= set(lines)
