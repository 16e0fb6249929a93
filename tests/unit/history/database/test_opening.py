"""Histories are opened, migrated once whoever opens them, and refused where they are none."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from alnair.history.database import migrating, opening
from alnair.history.database.addresses import HistoryError, is_history
from alnair.history.database.tables import METADATA
from kit.job_history import job_row, opened, pod_row, put


def test_migrations_from_nothing_make_the_tables_that_the_code_knows(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, METADATA) == []


def test_a_history_that_is_opened_again_keeps_what_it_has(tmp_path: Path) -> None:
    put(opened(tmp_path), jobs=[job_row()], pods=[pod_row()])
    with opened(tmp_path).connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM jobs").scalar() == 1


def test_many_may_open_one_history_at_once(tmp_path: Path) -> None:
    failed: list[BaseException] = []
    begin = threading.Barrier(6)

    def work() -> None:
        begin.wait()
        try:
            opened(tmp_path).dispose()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with opening.readable(str(tmp_path / "history.db")) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM alembic_version").scalar() == 1


def test_tables_belong_to_the_last_of_the_migrations() -> None:
    scripts = ScriptDirectory.from_config(migrating.configuration())
    assert scripts.get_current_head() == opening.REVISION


def test_who_finds_nothing_to_migrate_does_not_load_alembic(tmp_path: Path) -> None:
    opened(tmp_path).dispose()
    script = (
        "import sys\n"
        "from alnair.history.database import opening\n"
        "for writes in (True, False):\n"
        "    opening.open_history(sys.argv[1], writes=writes).dispose()\n"
        "print('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "history.db")]
    assert subprocess.check_output(command, text=True).strip() == "False"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mysql://host/db", "mysql cannot keep a history: write sqlite:///FILE"),
        ("sqlite://", "names no file"),
        ("postgresql://host:port/db", "this is no URL of a history"),
    ],
)
def test_an_address_of_no_history_is_refused_with_what_to_write(name: str, said: str) -> None:
    with pytest.raises(HistoryError, match=said):
        opening.open_history(name)


def test_who_opens_it_while_another_makes_it_waits(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")  # here SQLite itself does not wait
    threading.Timer(0.2, other.execute, ["COMMIT"]).start()
    opening.open_history(str(path), writes=True).dispose()
    other.close()


def test_who_reads_makes_no_history_and_takes_no_other_file_for_one(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="there is no such history"):
        opening.open_history(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(HistoryError, match="this is no history of Alnair"):
        opening.open_history(str(other))
    text = tmp_path / "text"
    text.write_text("a text, and no database at all" * 100)
    with pytest.raises(HistoryError, match="not a database"):
        opening.open_history(str(text))


def test_a_history_of_a_newer_version_is_neither_read_nor_changed(tmp_path: Path) -> None:
    with opened(tmp_path).begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    path = str(tmp_path / "history.db")
    with pytest.raises(HistoryError, match="version 9999"):
        opening.open_history(path)
    with pytest.raises(HistoryError, match="a newer Alnair has written it"):
        opening.open_history(path, writes=True)


def test_passwords_are_shown_to_nobody() -> None:
    url = opening.address("postgresql://ann:secret@db/alnair")
    assert opening.shown(url) == "postgresql://ann:***@db/alnair"


def test_a_history_is_told_by_its_url_or_by_the_begin_of_its_file(tmp_path: Path) -> None:
    opened(tmp_path)
    (tmp_path / "record").write_text("{}")
    assert is_history(str(tmp_path / "history.db"))
    assert is_history("postgresql+psycopg://db/x")
    assert not is_history(str(tmp_path / "record"))
    assert not is_history(str(tmp_path / "none"))
