# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""`python -m convoy`: the command, where no script of that name is on the PATH."""

from convoy.cli.main import main

main()
