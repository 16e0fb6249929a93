"""The documented semantics once more, slow and simple; nothing here uses what it judges."""
