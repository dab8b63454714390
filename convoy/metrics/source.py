# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node to scrape: asked anew each time, so that it may end and come back."""

from pathlib import Path

from convoy.client import Client, ClientError
from convoy.errors import ConvoyError
from convoy.host.counts import SCHEMA
from convoy.metrics.exposition import Page
from convoy.metrics.node import down, page_of


class Source:
    """A node by its socket, or whichever runs in a folder."""

    def __init__(self, place: Path) -> None:
        """Remember where; place: a node's read.sock, or its RUNTIME_DIRECTORY."""
        self._place = place

    def socket(self) -> Path:
        """Return where the node is asked now. Raises ClientError."""
        if not self._place.is_dir():
            return self._place
        sockets = sorted(self._place.glob("dpdk/convoyd-*/read.sock"))
        answering = [path for path in sockets if _answers(path)] if len(sockets) > 1 else sockets
        if not answering:
            raise ClientError(f"{self._place}: no node runs there")
        if len(answering) > 1:
            raise ClientError(f"{self._place}: {len(answering)} nodes run there; name one by PID")
        return answering[0]

    def read(self) -> Page:
        """Return the node's metrics. Raises ConvoyError."""
        path = self.socket()
        with Client(path) as client:
            counts = client.counts()
            if counts.get("schema") != SCHEMA:
                raise ClientError(
                    f"{path}: the node is Convoy {client.hello.version}, whose counts are "
                    f"{counts.get('schema')}; this one reads {SCHEMA}"
                )
            try:
                return page_of(counts, client.hello.version)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise ClientError(f"{path}: counts that cannot be read: {error!r}") from None

    def scrape(self) -> tuple[Page, str]:
        """Return what a scrape gets, whether the node answers or not, and why it does not."""
        try:
            return self.read(), ""
        except ConvoyError as error:
            return down(), str(error)


def _answers(path: Path) -> bool:
    try:
        with Client(path):
            return True
    except ClientError:
        return False
