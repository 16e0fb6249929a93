"""What a GPU and its driver are like, measured: for `alnair agent doctor`, to be sent to us."""
