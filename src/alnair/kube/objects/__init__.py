"""Objects as they come over the wire, and as the nouns of `alnair.model`; nothing is asked here."""
