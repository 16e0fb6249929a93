"""What goes on while Alnair is upgraded, and who judges it: each from what it sees for itself."""
