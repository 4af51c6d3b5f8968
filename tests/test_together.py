"""Many small waits, some at a time."""

from __future__ import annotations

import asyncio

import pytest
from imagecall.middleware.together import together
from waiting import settle


async def test_results_come_in_order_however_many_there_are() -> None:
    async def double(number: int) -> int:
        for _ in range(number % 3):
            await asyncio.sleep(0)
        return 2 * number

    assert await together(double(number) for number in range(171)) == [*range(0, 342, 2)]
    assert await together([]) == []


async def test_no_more_than_fifty_are_on_their_way() -> None:
    begun: list[asyncio.Event] = []

    async def one() -> None:
        begun.append(asyncio.Event())
        await begun[-1].wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(together(one() for _ in range(120)))
        for count in (50, 100, 120):
            await settle()
            assert len(begun) == count
            for event in begun:
                event.set()


async def test_behind_a_failure_none_is_begun() -> None:
    begun: list[int] = []

    async def one(number: int) -> None:
        begun.append(number)
        raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        await together(one(number) for number in range(120))
    assert begun == [*range(50)]
