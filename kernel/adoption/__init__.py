"""Topics of others taken into a stopped broker's data: another broker's (`adopting`), a bucket's (`restoring`)."""
