"""What `alnair doctor` looks at: is all there that Alnair needs, and does it work together?

Checks read, and change nothing; each says what it found, where, and the command that mends it.
Those of `cluster` ask the API server, those of `node` the machine that they run on.
"""
