"""A plot, as files and as a part of a page."""

import msgspec


class Plot(msgspec.Struct, frozen=True):
    """A plot.

    Attributes:
        files: `svg` and `png`.
        inline: SVG for a page, in the page's colour of text.
    """

    name: str
    title: str
    files: dict[str, bytes]
    inline: str
