"""What of a response is worth keeping: its final object, its pictures, the model server's ids for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .actions import KeepPicture, KeepResponse

__all__ = ["Record"]


class Record:
    """Collects what `KeepPicture` and `KeepResponse` tell.

    Args:
        item_type: the type of the items whose `result` is a picture.
        keep: False keeps nothing: no method then returns an action.
    """

    def __init__(self, item_type: str, *, keep: bool) -> None:
        self._item_type = item_type
        self._keep = keep
        self._turn = ""
        self._upstream: list[str] = []
        self._pictures: list[str] = []

    def heard(self, response: Mapping[str, Any]) -> None:
        """Note the id of a response object; where a turn has several, the last one counts."""
        given = response.get("id")
        if isinstance(given, str) and given:
            self._turn = given

    def turn_over(self) -> None:
        """Note that the turn says no more."""
        if self._turn and self._turn not in self._upstream:
            self._upstream.append(self._turn)
        self._turn = ""

    def picture(self, item: Mapping[str, Any], data: bytes) -> list[KeepPicture]:
        """Note a finished picture."""
        if not self._keep or not data:
            return []
        self._pictures.append(item["id"])
        return [KeepPicture(item, data)]

    def native(self, item_id: str, item: Mapping[str, Any]) -> list[KeepPicture]:
        """Note the picture of a model that has the tool of its own, if the item is one."""
        result = item.get("result")
        if item["type"] != self._item_type or not isinstance(result, str):
            return []
        return self.picture({**self._without_result(item), "id": item_id}, result.encode())

    def response(self, told: Mapping[str, Any], owed: tuple[Mapping[str, Any], ...]) -> list[KeepResponse]:
        """Put together what was noted.

        Args:
            told: the final response object.
            owed: see `KeepResponse`.
        """
        if not self._keep:
            return []
        output = [self._without_result(item) for item in told["output"]]
        ids = [item["id"] for item in output]
        pictures = tuple(sorted(self._pictures, key=ids.index))
        return [KeepResponse({**told, "output": output}, tuple(self._upstream), pictures, owed)]

    def _without_result(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        if item["type"] != self._item_type or "result" not in item:
            return item
        return {key: value for key, value in item.items() if key != "result"}
