"""What every test needs: the machine, its measured constants, tenants, and how long to take."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import msgspec

from gpu.machine import Machine
from gpu.nvml_account import settled
from gpu.programs import Program, ran
from gpu.tenants import Home, Tenants, tenants


class Bench(msgspec.Struct, frozen=True):
    """One run of the tests.

    Attributes:
        machine: where.
        tenants: makes containers there.
        scale: 1.0 for the full times and counts; less for a quick look.
        context: bytes that a context takes here.
        constants: what `load calibrate` measured without limits.
    """

    machine: Machine
    tenants: Tenants
    scale: float
    context: int
    constants: dict[str, Any]

    def count(self, full: int) -> int:
        """So many, or fewer in a quick run; at least 2."""
        return max(2, round(full * self.scale))

    def seconds(self, full: float) -> float:
        """So long, or less in a quick run; at least half a second."""
        return max(0.5, full * self.scale)

    def load(self, kind: str, seconds: float, at: Home) -> Program:
        """A running load of load.c, with kernels as long as without limits."""
        return Program("load", kind, seconds, self.constants["steps_per_ns"], at=at)


@contextmanager
def measured(machine: Machine, scale: float, *, served: bool) -> Iterator[Bench]:
    """Measures the constants; nothing else may use the GPU meanwhile."""
    found = []
    for _ in range(3):
        program = Program("memory", "hold", 0, at=Home(machine.environment("context")))
        program.line()
        if not found:
            settled(machine.nvml.growth)
            machine.nvml.learn(program.pid)
        found.append(machine.used("context", [program.pid]))
        program.go()
        program.end()
    constants = ran("load", "calibrate", 1, at=Home(machine.environment("calibrate")))
    context = int(median(found))
    with tenants(machine, context, served=served) as made:
        yield Bench(machine, made, scale, context, constants)
