"""Objects as the API server returns them, and small worlds of them, for tests of the checker."""
