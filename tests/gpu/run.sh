#!/bin/sh
# Tests the GPU of this machine: ./run [OPTIONS]; ./run --help. Needs a driver and Python, no more.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
for python in "${ALNAIR_PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        exec "$python" -B "$here/unpack.py" "$@"
    fi
done
echo "run: it needs Python 3.11 or newer, and none was found: ALNAIR_PYTHON=/path/to/python3 ./run" >&2
exit 2
