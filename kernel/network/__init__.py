"""Listeners, the connection, the two loops that drive it, limits and TLS.

| module | what it is |
| --- | --- |
| `settings` | what the operator chose, as frozen values |
| `configure` | those values from a broker's configuration |
| `exposure` | pure: whether strangers reach a broker that asks nobody who he is |
| `statistics` | what the network counts |
| `receive_memory` | pure: the memory that requests are received into, reused and bounded |
| `paces` | pure: who fills the memory of its frame too slowly, while others wait for it |
| `frame_receiver` | pure: who takes a connection's frames, and who moves its bytes |
| `connection` | pure: bytes in, frames, replies out, in order |
| `endpoint` | shell: a connection on a non-blocking socket |
| `tls_records` | pure: where records of TLS end, so that few are decrypted in one go |
| `tls` | shell: the same with TLS in between |
| `loop` | shell: turns, completions, limits, idle time-outs, draining: what both loops share |
| `reactor` | shell: one trio task over a nested epoll descriptor |
| `sleeper` | shell: sleeping in trio's stead, for a reactor in a run of its own |
| `portable` | shell: a trio task per connection, for systems without epoll |
| `listener` | shell: bind and accept |
| `server` | shell: the service that a broker runs |
"""
