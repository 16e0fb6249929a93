"""The lock on an agent's folder: one agent at a time serves it."""

import fcntl
import os
from pathlib import Path


class FolderLock:
    """Held until it is released, or its process ends.

    Args:
        folder: The agent's; it is made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fd = -1

    @property
    def in_use(self) -> str:
        """What to tell where another holds it."""
        return f"{self._folder} is in use by another agent: stop it, or give --folder"

    def take(self) -> bool:
        """Take it; returns whether nobody else holds it.

        Raises:
            OSError: The folder cannot be used; says why and what to do.
        """
        try:
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (PermissionError, FileExistsError, NotADirectoryError) as error:
            raise OSError(
                f"{self._folder} cannot be used: {error.strerror}; "
                "run the agent as root, or give another --folder"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Let another take it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
