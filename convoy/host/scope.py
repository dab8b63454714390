# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is there for a `with` block, and ends with it."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Scope(ABC):
    """Ends when its `with` block is left, however that is."""

    @abstractmethod
    def _leave(self) -> None:
        """End it."""

    def close(self) -> None:
        """End it without a `with` block."""
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
