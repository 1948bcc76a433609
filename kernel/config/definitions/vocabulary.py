"""Pure core: short names for the columns of the definition tables, so that a key fits on a line."""

from __future__ import annotations

from typing import Final

from ..keys import Importance, UpdateMode
from ..values import AtLeast, ConfigType, ListOf, Shaped

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
CLASS: Final = ConfigType.CLASS
PASSWORD: Final = ConfigType.PASSWORD

HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW

READ_ONLY: Final = UpdateMode.READ_ONLY
PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE

MAX_INT: Final = (1 << 31) - 1
MAX_LONG: Final = (1 << 63) - 1

POSITIVE: Final = AtLeast(1)
NOT_NEGATIVE: Final = AtLeast(0)
ANY_LIST: Final = ListOf()
SOME_LIST: Final = ListOf(may_be_empty=False)
VOTERS: Final = Shaped(
    r"[0-9]+@[^@]*:[0-9]+",
    "Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`.",
    "non-empty list",
)
SERVERS: Final = Shaped(
    r".+:[0-9]+",
    "Failed to parse host name from {value} for the configuration {name}. "
    'Each entry should be in the form "{{host}}:{{port}}"',
    "non-empty list",
)
AUTO_OFFSET_RESET: Final = Shaped(
    r"earliest|latest|by_duration:P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?",
    "Invalid value {value} for configuration {name}: Invalid value `{value}` for configuration {name}. "
    "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    "[latest, earliest, by_duration:PnDTnHnMn.nS]",
)
