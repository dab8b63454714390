// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Merges sorted runs into one, two by two. Equal times go to the earlier run, as in every
// engine. Which run is next can hardly be predicted, so nothing here branches on it; and since
// each step then waits for the one before, the second half is merged beside the first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/fifo.hh"
#include "engine/stream.hh"

namespace sim
{

// Two runs while they are merged: takes the earlier item, the first run's at a tie.
template <typename T> struct Pair {
	const T *a, *a_end, *b, *b_end;

	// So many items can be taken whichever they are.
	size_t sure() const
	{
		return static_cast<size_t>(std::min(a_end - a, b_end - b));
	}
	void take(T *out)
	{
		bool second = b->time < a->time;
		auto pick = reinterpret_cast<uintptr_t>(a) ^
			    ((reinterpret_cast<uintptr_t>(a) ^ reinterpret_cast<uintptr_t>(b)) &
				    -static_cast<uintptr_t>(second));
		*out = *reinterpret_cast<const T *>(pick);
		b += second;
		a += !second;
	}
	void take_all(T *out)
	{
		while (size_t sure_now = sure())
			for (size_t i = 0; i < sure_now; i++)
				take(out++);
		out = std::copy(a, a_end, out);
		std::copy(b, b_end, out);
	}
};

// Where the first `half` items of two merged runs come from: so many from the first run.
template <typename T> size_t split(Run<T> a, Run<T> b, size_t half)
{
	size_t low = half > b.count ? half - b.count : 0, high = std::min(half, a.count);
	while (low < high) {
		size_t mid = (low + high) / 2;
		// a[mid] belongs to the half if it does not come after b's last there.
		if (a.first[mid].time <= b.first[half - mid - 1].time)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

template <typename T> void merge_two(Run<T> a, Run<T> b, T *out)
{
	size_t half = (a.count + b.count) / 2;
	size_t from_a = split(a, b, half), from_b = half - from_a;
	const T *a_end = a.first + a.count, *b_end = b.first + b.count;
	Pair<T> one = {a.first, a.first + from_a, b.first, b.first + from_b};
	Pair<T> two = {a.first + from_a, a_end, b.first + from_b, b_end};
	T *out_two = out + half;
	while (size_t sure = std::min(one.sure(), two.sure())) {
		for (size_t i = 0; i < sure; i++) {
			one.take(out++);
			two.take(out_two++);
		}
	}
	one.take_all(out);
	two.take_all(out_two);
}

template <typename T> class Merge
{
      public:
	// The runs in order of precedence; used up. The result lies in the only run that is not
	// empty, or here until the next call.
	Run<T> merge(std::vector<Run<T>> &runs)
	{
		runs.erase(std::remove_if(runs.begin(), runs.end(),
				   [](const Run<T> &run) { return run.count == 0; }),
			runs.end());
		if (runs.empty())
			return {nullptr, 0};
		size_t all = 0;
		for (const auto &run : runs)
			all += run.count;
		for (int side = 0; runs.size() > 1; side ^= 1)
			halve(runs, buffers_[side].room(all));
		return runs[0];
	}

      private:
	// Every two neighbours become one in `out`; a last one without a neighbour is copied.
	static void halve(std::vector<Run<T>> &runs, T *out)
	{
		size_t kept = 0;
		for (size_t i = 0; i < runs.size(); i += 2) {
			Run<T> one = runs[i], merged = {out, one.count};
			if (i + 1 < runs.size()) {
				merge_two(one, runs[i + 1], out);
				merged.count += runs[i + 1].count;
			} else {
				std::copy(one.first, one.first + one.count, out);
			}
			out += merged.count;
			runs[kept++] = merged;
		}
		runs.resize(kept);
	}

	Fifo<T> buffers_[2];
};

} // namespace sim
