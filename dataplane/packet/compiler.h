// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the compiler is told in more than one place.
#ifndef CV_COMPILER_H
#define CV_COMPILER_H

#ifndef CV_INLINE // tests/support/sanitized.h
#define CV_INLINE inline __attribute__((always_inline))
#endif
// What a hot function seldom calls: it stays out of its way.
#define CV_NOINLINE __attribute__((noinline))
#define CV_LIKELY(x) __builtin_expect(!!(x), 1)
#define CV_UNLIKELY(x) __builtin_expect(!!(x), 0)

// What was copied before this line is not read again from where it was copied, as a compiler may
// otherwise do: for bytes that somebody else can change meanwhile.
#define CV_COPIED() __asm__ volatile("" : : : "memory")

// Asks for a line that will be written soon, out of another core's cache. (The compiler's own
// builtin asks to read only unless the target has PREFETCHW; every 64-bit x86 decodes it.)
#if defined(__x86_64__)
#define CV_PREFETCH_WRITE(at) __asm__ volatile("prefetchw %0" : : "m"(*(const char *)(at)))
#else
#define CV_PREFETCH_WRITE(at) __builtin_prefetch((at), 1)
#endif

// Around reads of what another thread may be writing, which are believed only if a version is the same
// before and after: ThreadSanitizer does not know fences, and would tell of each.
#if defined(__SANITIZE_THREAD__)
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#define CV_UNSURE_BEGIN() AnnotateIgnoreReadsBegin(__FILE__, __LINE__)
#define CV_UNSURE_END() AnnotateIgnoreReadsEnd(__FILE__, __LINE__)
#else
#define CV_UNSURE_BEGIN() ((void)0)
#define CV_UNSURE_END() ((void)0)
#endif

// Is this a build with AddressSanitizer? Its runtime keeps what was freed, and starts a process that
// looks into all threads for leaks, and a program that names lines. Such a build is for tests.
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

// A hot function: compiled for the baseline and for AVX2 and BMI (x86-64-v3: any processor that has
// them, whoever makes it), the better one chosen at load time. Sanitizers run before such a choice
// can be made, so their builds keep the baseline only.
#if CV_SANITIZED || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define CV_HOT
#else
#define CV_HOT __attribute__((target_clones("arch=x86-64-v3", "default")))
#endif

#endif
