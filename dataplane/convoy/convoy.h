// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// libconvoy: convoys for other people's network functions. Includes all of it.
//
//   walk.h   from a received frame to views of the packets in it, where they lie
//   outer.h  the outer header of a next hop; a walked convoy can be sent on with a new one
//   frame.h  from packets to a frame
//   view.h   what a view is
//
// Pure: no threads, no memory of its own, none of DPDK's runtime (only its byte order header).
// examples/native-vnf/ is a function that uses it.
#ifndef CV_CONVOY_H
#define CV_CONVOY_H

#include "convoy/format.h"
#include "convoy/frame.h"
#include "convoy/outer.h"
#include "convoy/walk.h"
#include "packet/view.h"

#endif
