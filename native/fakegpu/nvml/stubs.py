"""Writes the functions of nvml.h that no module of the fake models: counted and NOT_SUPPORTED.

python stubs.py NVML_H OBJECT... > stubs.c
What the objects define is modelled; their symbols are asked of nm.
"""

import re
import subprocess
import sys
from pathlib import Path

header, *objects = sys.argv[1:]
declared = re.findall(r"\bDECLDIR\s+(nvml\w+)\s*\(", Path(header).read_text(encoding="utf-8"))
symbols = subprocess.run(
    ["nm", "--defined-only", *objects], capture_output=True, text=True, check=True
).stdout
modelled = set(re.findall(r" T (nvml\w+)", symbols))
NOT_SUPPORTED = 3
print(f"""/* Without nvml.h: arguments are left alone, as all of Linux's calls allow. */
#include <stdatomic.h>
#include <stdint.h>
struct nv_counter {{
    _Atomic uint64_t born;
    _Atomic uint64_t *_Atomic count;
}};
unsigned nv_enter(struct nv_counter *counter, const char *name);
#define STUB(name) \\
    __attribute__((visibility("default"))) unsigned name(void); \\
    unsigned name(void) \\
    {{ \\
        static struct nv_counter counter; \\
        unsigned refused = nv_enter(&counter, #name); \\
        return refused ? refused : {NOT_SUPPORTED}; \\
    }}""")
for name in sorted(set(declared) - modelled):
    print(f"STUB({name})")
