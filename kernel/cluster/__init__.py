"""What makes a broker a member of a cluster whose metadata controllers keep.

| module | what it holds |
| --- | --- |
| `peer_channel` | one connection to another node, made again as often as it ends |
| `controller_nodes` | where controllers are, which one is active, and whom a channel asks next, pure |
| `controller_channel` | a channel to the active controller, which may move |
| `remote_controller` | requests to the controller, asked until they are answered; in an Envelope what clients asked |
| `broker_channels` | channels to the other brokers, by node id and purpose |
| `peer_batches` | what gathers for other brokers, asked of each in one request at a time |
| `coordinator_admissions` | whether producers may write, asked of the broker that coordinates their transactions |
| `marker_routes` | ends of transactions, brought to the leaders of partitions |
| `dead_letter_reads` | dead letters, fetched from the leaders of retry topics |
| `coordination` | these two, and the growth of internal topics, as the broker has them |
| `lifecycle` | the states of a broker's life, pure |
| `metadata_copy` | a copy of the metadata log, and the images that follow from it |
| `metadata_fetches` | fetches of the metadata log, and what their answers mean, pure |
| `metadata_observer` | keeps the copy up with the controllers |
| `interruption` | what keeps a node from following, as its operator is told of it, pure |
| `followed_metadata` | these, and their channel, as a broker has them |
| `metadata_source` | what a member asks of wherever its metadata comes from |
| `introduction` | what a broker asks before it is one: which cluster there is, and an id that is free |
| `joining` | from a configuration to a member |
| `member` | all of it together: registered, followed, unfenced, heard of, and left again |
| `peer_settings` | how other nodes are reached, from the configuration |
"""
