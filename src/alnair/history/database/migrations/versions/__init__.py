"""One module for each migration, in order. What has been released is never changed."""
