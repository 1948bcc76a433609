"""What makes a broker a member of a cluster whose metadata another node keeps.

| module | what it holds |
| --- | --- |
| `peer_channel` | one connection to another node, made again as often as it ends |
| `remote_controller` | requests to the controller, asked until they are answered; in an Envelope what clients asked |
| `broker_channels` | channels to the other brokers, by node id and purpose |
| `peer_batches` | what gathers for other brokers, asked of each in one request at a time |
| `coordinator_admissions` | whether producers may write, asked of the broker that coordinates their transactions |
| `marker_routes` | ends of transactions, brought to the leaders of partitions |
| `coordination` | these two, and the growth of internal topics, as the broker has them |
| `lifecycle` | the states of a broker's life, pure |
| `metadata_copy` | a copy of the metadata log, and the images that follow from it |
| `metadata_observer` | keeps the copy up with the controller |
| `joining` | from a configuration to a member |
| `member` | all of it together: registered, followed, unfenced, heard of, and left again |
| `peer_settings` | how other nodes are reached, from the configuration |
"""
