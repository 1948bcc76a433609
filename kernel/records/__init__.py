"""Pure core: record batches (format v2): headers, records, building, control records, compression, validation."""
