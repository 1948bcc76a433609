"""The plugins that ship with Odradek; each uses `odradek.kernel.api` and nothing else of ours."""
