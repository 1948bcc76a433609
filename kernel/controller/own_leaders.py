"""Shell: the broker beside the controller ends: what it leads is led by others first, as any other broker's is.

It sends no heartbeats by which it could ask for that, so its own node's controlled shutdown is asked for here. It
leaves the in-sync sets, too: while the controller is away no leader could put it out, and all would wait for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import KafkaError

if TYPE_CHECKING:
    from .metadata_log import MetadataLog
    from .rules import ControllerRules

log = logging.getLogger(__name__)

FOLLOWED_S_MAX: Final = 3.0
"""How long it may take to be decided, and the others to hear of it; who does not is told by the next that it asks."""
LOOK_AGAIN_S: Final = 0.01


async def hand_over(metadata: MetadataLog, rules: ControllerRules) -> None:
    """Have others lead, and be in sync without, this controller's broker, as far as they can; wait until they know.

    Without others it does nothing. Its next registration ends the shutdown. If cancelled, what was decided stands.
    """
    image, node_id = metadata.image, rules.node_id
    own = image.brokers.get(node_id)
    others = [broker.broker_id for broker in image.brokers.values() if broker.is_live and broker.broker_id != node_id]
    wanted = rules.config.get_bool("controlled.shutdown.enable")
    if own is None or not others or not wanted:
        return
    is_decided = False
    with trio.move_on_after(FOLLOWED_S_MAX):  # a controller that its quorum has left alone decides nothing any more
        try:
            await metadata.submit(
                lambda controller, _now_ms: controller.change_broker(
                    node_id, own.broker_epoch, fence=False, shutdown=True
                )
            )
        except KafkaError as error:
            log.warning("this broker's leaders could not be handed over: %s", error)
            return
        is_decided = True
        offset = metadata.image.offset
        while not rules.sessions.follows(others, offset):  # noqa: ASYNC110 - sessions tell nobody; it is brief and rare
            await trio.sleep(LOOK_AGAIN_S)
    if not is_decided:
        log.warning("this broker's leaders could not be handed over: that was not decided in %.0f s", FOLLOWED_S_MAX)
