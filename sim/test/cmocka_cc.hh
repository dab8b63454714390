// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// cmocka, as C++ may include it.
#pragma once

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}
