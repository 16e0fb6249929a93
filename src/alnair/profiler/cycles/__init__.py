"""Does a series repeat itself, and how long does it take? By spectrum and autocorrelation. Pure."""
