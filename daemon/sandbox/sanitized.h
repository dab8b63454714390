// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Is this a build with AddressSanitizer? Its runtime starts a process that looks into all threads for
// leaks, and a program that names lines. Such a build is for tests.
#ifndef CV_SANITIZED_H
#define CV_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define CV_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CV_SANITIZED 1
#endif
#endif
#ifndef CV_SANITIZED
#define CV_SANITIZED 0
#endif

#endif
