"""Other people's clients against our broker, each in a process of its own."""
