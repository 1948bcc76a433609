"""Where designs are tried and compared: brokers side by side under one workload."""
