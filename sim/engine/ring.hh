// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Small queues for the hot paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/packet.hh"

namespace sim
{

// A first-in-first-out queue in one block of memory that grows by doubling and never shrinks.
template <typename T> class Ring
{
      public:
	bool empty() const
	{
		return head_ == tail_;
	}
	size_t size() const
	{
		return tail_ - head_;
	}
	T &front()
	{
		return items_[head_ & mask_];
	}
	void push(const T &item)
	{
		if (size() == items_.size())
			grow();
		items_[tail_++ & mask_] = item;
	}
	void pop()
	{
		head_++;
	}

      private:
	void grow()
	{
		std::vector<T> larger(items_.empty() ? 16 : items_.size() * 2);
		size_t n = size();
		for (size_t i = 0; i < n; i++)
			larger[i] = items_[(head_ + i) & mask_];
		items_.swap(larger);
		mask_ = items_.size() - 1;
		head_ = 0;
		tail_ = n;
	}

	std::vector<T> items_;
	size_t head_ = 0, tail_ = 0, mask_ = 0;
};

// A finite queue known only by the times at which its members leave: with room for k, a
// newcomer is refused while the k-th before it is still inside.
class Occupancy
{
      public:
	explicit Occupancy(uint64_t limit) : leaves_(limit, -1)
	{
	}

	bool limited() const
	{
		return !leaves_.empty();
	}
	bool full(Ps now) const
	{
		return !leaves_.empty() && leaves_[at_] > now;
	}
	void enter(Ps leaves)
	{
		if (leaves_.empty())
			return;
		leaves_[at_] = leaves;
		at_ = at_ + 1 == leaves_.size() ? 0 : at_ + 1;
	}

      private:
	std::vector<Ps> leaves_;
	size_t at_ = 0;
};

} // namespace sim
