// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vring/call.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "packet/compiler.h"

#define EVENTS 128 // that may lie in the ring; it is emptied each time
#define RING_MAGIC 0xa10a10a1u

// Where the kernel puts what is done: the first page of a context, as libaio reads it.
struct ring {
	uint32_t id, places, head, tail;
	uint32_t magic;
};

static struct {
	int rc; // of the beginning
	aio_context_t context;
	int reads, writes; // /dev/null, that can be read and that cannot
} aio = {.rc = -EAGAIN};

static void begin(void)
{
	const struct ring *ring;

	aio.reads = open("/dev/null", O_RDONLY | O_CLOEXEC);
	aio.writes = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (aio.reads < 0 || aio.writes < 0 || syscall(SYS_io_setup, EVENTS, &aio.context) != 0) {
		aio.rc = -errno;
		return;
	}
	ring = (const struct ring *)aio.context;
	aio.rc = ring->magic == RING_MAGIC ? 0 : -ENOSYS;
}

int cv_call_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
	return aio.rc;
}

// Nobody wants to know what is done. Any number of threads: each only moves head on to where it saw
// the end, unless another has moved it meanwhile.
static void forget_events(void)
{
	struct ring *ring = (struct ring *)aio.context;
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
	// Pairs with the kernel's release of tail.
	const uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);

	__atomic_compare_exchange_n(
		&ring->head, &head, tail, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

// Reads nothing from a file, and tells an eventfd when that is done, which is at once. 0 or -errno.
static int read_and_signal(int from, int fd)
{
	struct iocb read = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)from,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)fd,
	};
	struct iocb *list[] = {&read};

	return syscall(SYS_io_submit, aio.context, 1, list) == 1 ? 0 : -errno;
}

bool cv_call_is_eventfd(int fd)
{
	// The kernel looks at the eventfd (EINVAL), and only then at whether the file can be read.
	return cv_call_begin() == 0 && read_and_signal(aio.writes, fd) == -EBADF &&
	       fcntl(fd, F_GETFD) >= 0;
}

bool cv_call(int fd)
{
	int rc;

	if (CV_UNLIKELY(cv_call_begin() != 0))
		return false;
	rc = read_and_signal(aio.reads, fd);
	forget_events();
	if (CV_UNLIKELY(rc == -EAGAIN)) // others had filled the ring
		rc = read_and_signal(aio.reads, fd);
	return rc == 0;
}
