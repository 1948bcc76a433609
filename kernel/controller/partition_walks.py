"""Pure core: looks for partitions among all there are, so that others may come in between: there may be very many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..metadata.image import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from ..contracts.election import PartitionState
    from ..metadata.image import MetadataImage, TopicImage

PASSED_PER_STEP: Final = 100
"""How many partitions that are not meant are one step: ten microseconds or twenty."""


def partitions_in_steps(
    image: MetadataImage, is_meant: Callable[[PartitionState], bool]
) -> Iterator[tuple[TopicImage, int] | None]:
    """Iterate over the partitions whose state is meant, topic and number, in no order; None stands between steps.

    Sorted by name a hundred thousand topics would be a long step themselves. What is done with a partition is a step
    of its own, which the caller makes.
    """
    passed = 0
    for topic in image.topics_by_name.values():
        for index, state in enumerate(topic.partitions):
            if is_meant(state):
                yield topic, index
                continue
            passed += 1
            if passed == PASSED_PER_STEP:
                passed = 0
                yield None


def leads_any(image: MetadataImage, broker_id: int) -> Generator[None, None, bool]:
    """Return whether a broker leads a partition."""
    for found in partitions_in_steps(image, lambda state: state.leader == broker_id):
        if found is not None:
            return True
        yield
    return False


def has_replicas(image: MetadataImage, broker_id: int) -> Generator[None, None, bool]:
    """Return whether a replica is assigned to a broker, registered or not."""
    for found in partitions_in_steps(image, lambda state: broker_id in state.replicas):
        if found is not None:
            return True
        yield
    return False


def unbalanced(image: MetadataImage) -> Iterator[tuple[TopicImage, int] | None]:
    """Iterate, as `partitions_in_steps`, over the partitions which another replica than the preferred one leads."""
    return partitions_in_steps(image, lambda state: state.leader not in {NO_LEADER, state.replicas[0]})
