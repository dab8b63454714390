// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What differs between the releases of DPDK that Convoy is built with. The code is written for the
// newest, 24.11 (Debian 13); what 22.11 (Debian 12) lacks or has otherwise is in the folder 22.11,
// which is deleted together with the two lines below.
#ifndef CV_DPDK_COMPAT_H
#define CV_DPDK_COMPAT_H

#include <rte_lpm6.h>
#include <rte_telemetry.h>
#include <rte_thread.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(24, 11, 0, 0)
#include "dpdk/22.11/compat.h"
#endif

// The thread of rte_vhost that serves all guests' sockets.
#ifndef CV_DPDK_VHOST_THREAD
#define CV_DPDK_VHOST_THREAD "dpdk-vhost-evt"
#endif

#endif
