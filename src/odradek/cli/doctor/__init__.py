"""Shell: `odradek cluster doctor`: what is seen of a cluster, and what that means, in words, with what to do."""
