"""What tests of a real node share: pods of all kinds, the driver's own books, faults in between."""
