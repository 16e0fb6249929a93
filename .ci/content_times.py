"""Gives each file of the clone a time that its content decides.

A clone's files are all new, so what Python, mypy and pytest have kept of the last clone's would not
hold. With these times it does, and only for what has not changed.
"""

import os
import subprocess

#: Seconds of 2001 and the years after it: older than whatever is made of the files.
_FIRST, _MOST = 1_000_000_000, 1 << 28

listed = subprocess.run(["git", "ls-files", "-s", "-z"], capture_output=True, check=True).stdout
for line in listed.split(b"\0")[:-1]:
    _, blob, rest = line.split(b" ", 2)
    path = rest.partition(b"\t")[2]
    when = _FIRST + int(blob[:10], 16) % _MOST
    os.utime(path, (when, when), follow_symlinks=False)
