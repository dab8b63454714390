// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A directory of a test's own, which goes when the test does: at its end, where it fails, and
// where it is killed.
#ifndef CV_TEST_DIR_H
#define CV_TEST_DIR_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Makes a directory as mkdtemp() does. A process of its own removes it once this one, and all
// that inherited its end of a pipe, have ended, however they did. 0, or -1 and errno.
static inline int test_dir_make(char *template)
{
	int ends[2];

	if (mkdtemp(template) == NULL || pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	switch (fork()) {
	case -1:
		return -1;
	case 0:
		// Nobody waits for the end of our output, and Ctrl-C is not for us.
		setsid();
		dup2(ends[0], STDIN_FILENO);
		if (freopen("/dev/null", "w", stdout) == NULL ||
			freopen("/dev/null", "w", stderr) == NULL)
			_exit(1);
		execl("/bin/sh", "sh", "-c", "cat; rm -rf \"$0\"", template, (char *)NULL);
		_exit(1);
	default:
		close(ends[0]); // the other end stays open as long as we live
		return 0;
	}
}

#endif
