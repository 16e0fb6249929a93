"""Reports of histories: a page, plots and tables in a folder, for runs side by side.

`render` makes the files, as bytes; `write` puts them into a folder, all or none. Equal histories
give equal bytes. The page needs jinja2, and plots need matplotlib (`pip install 'alnair[report]'`);
without them all else is there, and the page says what is missing.
"""

from alnair.history.report.files import render
from alnair.history.report.folder import NotReportError, check, write, write_files

__all__ = ["NotReportError", "check", "render", "write", "write_files"]
