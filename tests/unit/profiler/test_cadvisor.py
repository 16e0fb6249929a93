"""What is read of the kubelet's page of cAdvisor."""

from alnair.node.cgroups import place
from alnair.profiler.cadvisor import read_cadvisor
from alnair.profiler.samples import CgroupSample, ContainerKey, NetworkSample
from kit.fake_cgroups import ID, OTHER, UID

POD = f"/kubepods/burstable/pod{UID}"
SYSTEMD = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{OTHER}.scope"
PAGE = f"""# HELP container_cpu_usage_seconds_total Cumulative cpu time consumed in seconds.
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{{container="",cpu="total",id="/",image="",name="",namespace="",pod=""}} 99 1700000000500
container_cpu_usage_seconds_total{{container="",cpu="total",id="{POD}",image="",name="",namespace="ns",pod="a"}} 9 1700000000500
container_cpu_usage_seconds_total{{container="main",cpu="total",id="{POD}/{ID}",image="i}}x",name="{ID}",namespace="ns",pod="a"}} 1.25 1700000000500
container_cpu_usage_seconds_total{{container="side",cpu="total",id="{SYSTEMD}",image="i",name="{OTHER}",namespace="ns",pod="a"}} 2e-3 1700000001500
container_memory_working_set_bytes{{container="main",id="{POD}/{ID}",image="i",name="{ID}",namespace="ns",pod="a"}} 4.194304e+06 1700000000501
container_fs_writes_bytes_total{{container="main",device="/dev/sda",id="{POD}/{ID}",image="i",name="{ID}",namespace="ns",pod="a"}} 4096 1700000000500
container_fs_writes_bytes_total{{container="main",device="/dev/sdb",id="{POD}/{ID}",image="i",name="{ID}",namespace="ns",pod="a"}} 1 1700000000500
container_pressure_cpu_waiting_seconds_total{{container="main",id="{POD}/{ID}",image="i",name="{ID}",namespace="ns",pod="a"}} 0.5 1700000000500
container_oom_events_total{{container="main",id="{POD}/{ID}",image="i",name="{ID}",namespace="ns",pod="a"}} NaN 1700000000500
container_network_receive_bytes_total{{container="",id="{POD}",image="",interface="eth0",name="x",namespace="ns",pod="a"}} 1000 1700000000700
container_network_receive_bytes_total{{container="",id="{POD}",image="",interface="lo",name="x",namespace="ns",pod="a"}} 77 1700000000700
container_network_transmit_bytes_total{{container="",id="{POD}",image="",interface="eth0",name="x",namespace="ns",pod="a"}} 50 1700000000700
container_start_time_seconds{{container="main",id="{POD}/{ID}",image="i",name="{ID}",namespace="ns",pod="a"}} 1.7e+09
machine_cpu_cores{{machine_id=""}} 2
"""  # noqa: E501 (as the kubelet writes it)


def whose(path: str) -> tuple[str, str]:
    found = place(path)
    return found.pod, found.container


def test_containers_and_networks_are_told_with_their_own_times() -> None:
    found = read_cadvisor(PAGE.encode(), whose)
    assert found.containers == {
        ContainerKey(UID, ID): CgroupSample(
            1700000000.5,
            cpu_ns=1_250_000_000,
            memory_bytes=4 << 20,
            io_write=4097,
            pressure={"cpu": 500_000},
        ),
        ContainerKey(UID, OTHER): CgroupSample(1700000001.5, cpu_ns=2_000_000),
    }
    assert found.networks == {UID: NetworkSample(1700000000.7, 1000, 50)}


def test_what_is_no_page_tells_nothing() -> None:
    for page in (b"", b"<html>", b"container_cpu_usage_seconds_total{} x y\n", b"\xff" * 100):
        found = read_cadvisor(page, whose)
        assert (found.containers, found.networks) == ({}, {})
