"""Sessions drawn by chance, held with two brokers in step; `python -m tools.compare_by_chance` runs many of them.

==============  ====================================================================================
`themes.py`     which APIs a session asks, and how often
`choices.py`    what each field of a request may hold: right mostly, and wrong in known ways
`draws.py`      draws requests from both, by the messages' own schemas
`members.py`    ids, generations and epochs of members, so that most requests of groups fit
`producers.py`  epochs and sequences, so that most batches fit
`world.py`      what one broker drew for itself (ids), and what stands for it in a request
`lockstep.py`   asks both brokers the same, and stops at the first difference
`known.toml`    differences that are known, with their reasons
==============  ====================================================================================

What is found here becomes a step of a session in `sessions/`, with Kafka's answer beside it.
"""
