"""Records of one key in order, though some wait in the group's retry topic (`odradek.retry.order=key`).

| module | what it is |
| --- | --- |
| `waiting_keys` | pure: which records of one retry partition wait, or are not worked on yet, read from its log |
| `key_order` | pure: whether a record may be given now, is passed over, or is to be put behind those |
| `order_keeper` | the tasks that read those logs, and put records behind |

    TOPIC-3  ── k1 a1 k2 ──>  judge ──> poll: a1
                               │ k1 waits: put k2 behind it
    RETRY-3  <─────────────────┘   the log of which says what waits: k1 until 12:00, k2 until 12:00
"""
