"""API objects as the checker reads them: a second time, from plain objects, in exact fractions."""
