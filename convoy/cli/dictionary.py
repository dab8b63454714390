# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy dictionary: what both ends of compressed convoys know of their packets beforehand."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.files import will_write, write_whole
from convoy.cli.result import Json, Result
from convoy.errors import InputError
from convoy.frame.capture import read_packets
from convoy.frame.dictionary import MAX_BYTES, SHORT_BYTES, dictionary_id, make_dictionary


@dataclass(frozen=True)
class Dictionary(Result):
    """A dictionary that was written."""

    file: str
    bytes: int
    id: int
    packets: int  # of the captures, that were short enough to learn from

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.dictionary/1", **asdict(self)}

    def show(self, out: Console) -> None:
        """Print what was written."""
        out.print(
            f"{self.file}: {self.bytes:,} bytes, id {self.id:#010x}, of {self.packets:,} packets",
            markup=False,
        )


def command(
    captures: Annotated[list[Path], typer.Argument(help="pcap or pcapng files of the traffic.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")],
    size: Annotated[int, typer.Option(min=1, max=MAX_BYTES, help="Bytes at most.")] = MAX_BYTES,
    as_json: Json = False,
) -> Result:
    """Make a dictionary for compressed convoys from captured traffic (docs/convoys.md).

    Name the file at the next hop that compresses (dictionary:), and give a copy to the node that
    expands (dictionaries:). It has short packets of the captures as they are: keep it as private
    as these.
    """
    will_write("--output", output)
    packets = [packet for path in captures for packet in read_packets(path)]
    dictionary = make_dictionary(packets, size)
    if not dictionary:
        names = ", ".join(map(str, captures))
        raise InputError(f"{names}: no whole packet of 14 to {SHORT_BYTES} bytes; capture more")
    write_whole(output, dictionary)
    short = sum(len(packet) <= SHORT_BYTES for packet in packets)
    return Dictionary(str(output), len(dictionary), dictionary_id(dictionary), short)
