# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""`convoy bench hostile`: a guest beside a neighbour on one worker. It needs no scenario."""
