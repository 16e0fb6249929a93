"""The engine: events in, actions out. It owns all state and knows no network and no clock."""
