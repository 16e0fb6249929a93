"""Training jobs that grow and shrink: what each consists of, and how many workers each has.

Pure: values in, values out. It knows no API server, no clock, no randomness and no scheduler: who
asks brings what there is, the time, keys that were drawn, and a room in which placements are tried.
"""
