"""What is shipped for tests, as the tests of somebody else use it."""
