"""Shell: the asking end of a connection between brokers and clients: what both share who ask a broker something.

    async with open_connection("127.0.0.1", 9092, settings) as connection:
        response = await connection.request(MetadataRequest(topics=None), timeout_ms=30_000)

| module | what it holds |
| --- | --- |
| `connection` | requests in a pipeline, answers by correlation id, pauses that the broker asks for |
| `versions` | pure: which version both sides speak |
| `fetch_session_handler` | pure: what a Fetch names and what the broker remembers |
| `backoff` | pure: the pauses between attempts |
| `strangers` | pure: who answers there if it is no broker |
| `settings` | pure: what a connection needs to be told |
| `errors` | pure: what is raised where no answer came |
| `tls` | certificates and keys |
| `lifetime` | tasks that live as long as an `async with` |

.. versionadded:: 0.1
"""
