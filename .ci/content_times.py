"""Gives each file of the clone a time that its content decides.

A clone's files are all new, so what Python, mypy and pytest have kept of the last clone's would not
hold. With these times it does, and only for what has not changed.
"""

import hashlib
import os
import subprocess
from pathlib import Path

#: Seconds of 2001 and the years after it: older than whatever is made of the files.
_FIRST, _MOST = 1_000_000_000, 1 << 28

listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout
for name in listed.decode().split("\0")[:-1]:
    path = Path(name)
    if path.is_file() and not path.is_symlink():
        digest = hashlib.blake2b(path.read_bytes(), digest_size=8).digest()
        when = _FIRST + int.from_bytes(digest) % _MOST
        os.utime(path, (when, when))
