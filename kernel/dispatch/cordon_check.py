"""Pure core: who may cordon which log directories: only a broker itself knows which it has.

Everything else about configs the controller decides. It knows directories by id, and `cordoned.log.dirs` names paths:
so each broker refuses what names none of its own before it asks the controller. What was asked of another node is taken
only as far as it gives directories free.

*Source:* KIP-1066; Kafka's `ConfigAdminManager` and `ConfigurationControlManager`; codes and words compared with 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..config.alter import Alteration, AlterConfigOp, edited_list
from ..config.cordons import CORDONED, why_refused
from ..config.values import InvalidValueError
from ..errors import ErrorCode, KafkaError
from ..metadata.image import ResourceType
from .forwarded import InnerRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..config.broker import BrokerConfig
    from ..contracts.api_handler import RequestContext
    from ..metadata.image import MetadataImage

_EDITS: Final = frozenset({AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT})


@frozen
class CordonCheck:
    """What a node refuses before it asks the controller to alter configs.

    Attributes:
        broker_id: This node.
        config: Returns its configuration with the dynamic layers.
        image: Returns the metadata.
    """

    broker_id: int
    config: Callable[[], BrokerConfig]
    image: Callable[[], MetadataImage]

    def refusal(
        self, kind: int, name: str, alterations: Iterable[Alteration], context: RequestContext
    ) -> KafkaError | None:
        """Return why what is to become of a resource is refused here; None: that is for the controller to say."""
        if kind != ResourceType.BROKER or not name:
            return None
        wanted = next((each for each in alterations if each.name == CORDONED), None)
        if wanted is None or wanted.text is None or wanted.operation == AlterConfigOp.DELETE:
            return None
        if name == str(self.broker_id):
            config = self.config()
            problem = why_refused(_entries_after(config, wanted), config.log_dirs)
            return KafkaError(ErrorCode.INVALID_REQUEST, f"requirement failed: {problem}") if problem else None
        if isinstance(context, InnerRequest):
            return None  # the broker that sent it on has looked
        theirs = self.config().with_dynamic(cluster={}, broker=self.image().config(ResourceType.BROKER, name))
        if set(_entries_after(theirs, wanted)) <= set(theirs.get_list(CORDONED)):
            return None
        return KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {self.broker_id}, but received {name}"
        )


def _entries_after(config: BrokerConfig, wanted: Alteration) -> Sequence[str]:
    """Return what the directories' list becomes; empty where the text is no list, which the controller refuses."""
    assert wanted.text is not None, "what is deleted is not asked for"
    text = wanted.text
    if wanted.operation in _EDITS:
        text = edited_list(config.value(CORDONED), wanted.operation, text)
    try:
        value = config.key(CORDONED).parse(text)
    except InvalidValueError:
        return ()
    return value if isinstance(value, tuple) else ()
