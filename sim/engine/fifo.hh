// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A first-in-first-out queue whose items lie side by side, so that a run of them can be written
// and read as an array. What is taken out is forgotten when room is needed, at no more than one
// move per item on average.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace sim
{

template <typename T> class Fifo
{
      public:
	size_t size() const
	{
		return tail_ - head_;
	}
	T *data()
	{
		return items_.get() + head_;
	}

	// Where the next n items go, not yet inside; valid until the next call. Invalidates data().
	T *room(size_t n)
	{
		if (tail_ + n > capacity_)
			make_room(n);
		return items_.get() + tail_;
	}
	// The first n of room() are written: they are inside now.
	void commit(size_t n)
	{
		tail_ += n;
	}
	void push(const T &item)
	{
		*room(1) = item;
		tail_++;
	}

	// Takes the first n out. Their memory stays as it is until the next room().
	void drop(size_t n)
	{
		head_ += n;
	}
	// When empty, begins at the front again, where the cache is warm.
	void rewind()
	{
		if (head_ == tail_)
			head_ = tail_ = 0;
	}

      private:
	void make_room(size_t n)
	{
		size_t inside = size();
		if (head_ > inside && inside + n <= capacity_) {
			std::memcpy(items_.get(), data(), inside * sizeof(T));
			head_ = 0;
			tail_ = inside;
			return;
		}
		// realloc moves large blocks by their pages, without touching them.
		capacity_ = std::max<size_t>(64, 2 * (tail_ + n));
		auto *larger = std::realloc(items_.get(), capacity_ * sizeof(T));
		if (!larger)
			throw std::bad_alloc();
		(void)items_.release();
		items_.reset(static_cast<T *>(larger));
	}

	struct Free {
		void operator()(T *items) const
		{
			std::free(items);
		}
	};
	static_assert(std::is_trivially_copyable_v<T>);
	std::unique_ptr<T[], Free> items_;
	size_t capacity_ = 0, head_ = 0, tail_ = 0;
};

} // namespace sim
