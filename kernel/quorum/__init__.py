"""The quorum of controllers: who keeps the metadata log together, and who leads among them.

Its election is a plugin's (`election_quorum`), as every partition's; what is decided is carried out where it is for
every replica (`partitions/election_driver.py`, `replication/election_service.py`). A broker alone has none of this: its
log is `controller/local_log.py`.

| module | what it holds |
| --- | --- |
| `node`, `node_opening` | Shell: a node among the controllers: all of the following, and the broker beside it |
| `opening` | Shell: a controller's replica is opened: what its directory says, under an election that votes |
| `quorum_log` | Shell: the replica: what leads, what follows, what both and requests ask of it |
| `quorum_view` | Shell: the replica and what is committed of it, as who asks the controller's listener sees it |
| `registration` | Shell: a controller has the active one know where it listens, and what it supports |
| `quorum_times` | Pure core: how long elections and commits took |
| `replica_views` | Pure core: the replica as each of those who work with it needs it |
| `log_epochs` | Shell: where epochs end in a log that begins behind a snapshot; who went another way |
| `committed_images` | Shell: the image of what is committed, whoever leads; snapshots of it |
| `terms` | Shell: the controller, in those terms in which this node leads |
| `kraft_version` | Shell: the log comes to name the voters, whom the configuration named |
| `following` | Shell: the fetches of a controller that does not lead |
| `known_controllers` | Shell: who votes and who leads, by this controller's log, told its node's channels |
| `voter_channels` | Shell: the election's messages to other voters |
| `voter_messages` | Pure core: what the shell adds to them |
| `voter_history` | Pure core: who votes, as the newest snapshot and the log behind it name them |
| `founding` | Pure core: how voters whose directories are empty found a cluster, once |
| `founding_messages` | Pure core: what they say to each other meanwhile |
| `founding_directory` | Shell: what the directories say of that, and the founding that is kept until all have it |
| `founding_shell`, `founding_handlers` | Shell: the rounds in which they ask, and what they answer meanwhile |
| `voters_record` | Pure core: voters that are named from outside, as the log names them |
| `growing` | Shell: whether a metadata log was kept by one node alone, which is to be the first of several |
| `formatting` | Shell: directories made a cluster's by hand, as `kafka-storage format` makes them |
| `own_voter` | Shell: what a controller asks of the leader about itself: to be a voter, and that its address is known |
"""
