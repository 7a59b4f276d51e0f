"""The loss guard: aborts a run that would end too many memories or shrink their text too much. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LossLimits:
    """The limits of the loss guard.

    - `max_ended_share`: the largest share of a user's current memories that one run may end
    - `min_text_share`: the smallest share of the ended memories' characters that must remain
    - `free_ended_count`: a run that ends no more memories than this is never aborted, so that the few memories of a
      new user can be merged
    """

    max_ended_share: float = 0.3
    min_text_share: float = 0.25
    free_ended_count: int = 4


@dataclass(frozen=True, slots=True)
class LossEstimate:
    """What a run would take from a user: current memories, memories ended, characters before and after."""

    current: int
    ended: int
    text_before: int
    text_after: int


def check_loss(estimate: LossEstimate, limits: LossLimits) -> str | None:
    """Return the reason to abort a run, or None."""
    if estimate.ended <= limits.free_ended_count:
        return None
    if estimate.ended > limits.max_ended_share * estimate.current:
        return f"it would end {estimate.ended} of {estimate.current} memories, more than {limits.max_ended_share:.0%}"
    if estimate.text_after < limits.min_text_share * estimate.text_before:
        return (
            f"it would shrink {estimate.text_before} characters to {estimate.text_after}, "
            f"below {limits.min_text_share:.0%}"
        )
    return None
