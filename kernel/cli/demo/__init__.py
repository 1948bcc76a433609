"""The parts of `odradek demo`: the data set, the story, its pictures."""
