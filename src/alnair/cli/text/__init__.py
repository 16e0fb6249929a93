"""Results as people read them: tables, sentences and progress on a terminal."""
