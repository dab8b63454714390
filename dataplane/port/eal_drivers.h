// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A start of the EAL without drivers of devices. A DPDK of shared libraries loads each driver that is
// installed, more than a hundred libraries, which is half of a node's start. Only ports that are devices of
// DPDK need some.
#ifndef CV_EAL_DRIVERS_H
#define CV_EAL_DRIVERS_H

// The next rte_eal_init() of this thread finds no folder of drivers, until it is shown. Nothing is hidden if the
// one library of it that all need, for packet buffers are kept in its rings, cannot be loaded from here.
void cv_eal_drivers_hide(void);
void cv_eal_drivers_show(void);

#endif
