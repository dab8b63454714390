// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Puts the queues of started ports in place of their drivers' ones.
//
// rte_eth_rx_burst() and rte_eth_tx_burst() are inline: they call the functions in
// rte_eth_fp_ops[port], which rte_eth_dev_start() fills in and rte_eth_dev_stop() takes out. The
// library defines both, and the queues' set-up, before librte_ethdev does.
#ifndef CV_ETHDEV_HOOK_H
#define CV_ETHDEV_HOOK_H

#include <stdbool.h>

#include "preload/ethdev/counts.h"

// The sums of a port; false: it was never hooked.
bool cv_hook_counts(uint16_t port, struct cv_rx_counts *rx, struct cv_tx_counts *tx);

#endif
