"""NodeResourcesFit: enough of every requested resource; scores by what is left or used."""
