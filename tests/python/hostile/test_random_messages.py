# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Random lives of guests. tests/fuzz/vhost_messages.py goes on with it for as long as you like."""

import pytest

from .random_messages import Life
from .targets import OURS, Target

FIRST_SEED, LIVES = 1, 150


@pytest.mark.parametrize("kind", OURS, indirect=True)
def test_random_messages(target: Target):
    for seed in range(FIRST_SEED, FIRST_SEED + LIVES):
        try:
            Life(target, seed).live()
            target.calm()
            target.assert_sound()
        except BaseException:
            print(f"tests/fuzz/vhost_messages.py --seed {seed}")
            raise
    target.assert_well()
