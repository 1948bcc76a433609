"""The quorum of controllers: who keeps the metadata log together, and who leads among them.

Its election is a plugin's (`election_quorum`), as every partition's; what is decided is carried out where it is for
every replica (`partitions/election_driver.py`, `replication/election_service.py`). A broker alone has none of this: its
log is `controller/local_log.py`.

| module | what it holds |
| --- | --- |
| `voter_history` | Pure core: who votes, as the newest snapshot and the log behind it name them |
"""
