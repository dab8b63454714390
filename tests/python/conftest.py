# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What every test starts with."""

import signal

# A shell's background jobs ignore these, and all that they start does too; tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
