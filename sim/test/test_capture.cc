// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Captures as sources: both formats, both byte orders, resolutions, and what is damaged.
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include "model/source.hh"
#include "test/cmocka_cc.hh"

using namespace sim;

namespace
{

// A file that is written anew for each row.
class File
{
      public:
	File() : fd_(mkstemp(path_))
	{
		assert_true(fd_ >= 0);
	}
	~File()
	{
		close(fd_);
		unlink(path_);
	}
	void write(const std::string &bytes)
	{
		assert_int_equal(ftruncate(fd_, 0), 0);
		assert_int_equal(pwrite(fd_, bytes.data(), bytes.size(), 0),
			static_cast<ssize_t>(bytes.size()));
	}
	const char *path() const
	{
		return path_;
	}

      private:
	char path_[32] = "/tmp/convoy-sim-test-XXXXXX";
	int fd_;
};

// Numbers as a machine of either byte order writes them.
struct Order {
	bool swapped;

	std::string word(uint32_t v) const
	{
		if (swapped)
			v = __builtin_bswap32(v);
		return std::string(reinterpret_cast<char *>(&v), 4);
	}
	std::string half(uint16_t v) const
	{
		if (swapped)
			v = __builtin_bswap16(v);
		return std::string(reinterpret_cast<char *>(&v), 2);
	}

	std::string pcap_header(uint32_t magic = 0xa1b2c3d4, uint32_t link = 1) const
	{
		return word(magic) + half(2) + half(4) + word(0) + word(0) + word(65535) +
		       word(link);
	}
	std::string pcap_record(uint32_t s, uint32_t fraction, uint32_t length) const
	{
		return word(s) + word(fraction) + word(20) + word(length) + std::string(20, 'x');
	}

	std::string block(uint32_t type, const std::string &content) const
	{
		auto length = static_cast<uint32_t>(content.size() + 12);
		return word(type) + word(length) + content + word(length);
	}
	std::string section() const
	{
		return block(
			0x0a0d0d0a, word(0x1a2b3c4d) + half(1) + half(0) + word(~0u) + word(~0u));
	}
	std::string interface(const std::string &options = "", uint16_t link = 1) const
	{
		return block(1, half(link) + half(0) + word(0) + options);
	}
	std::string resolution(unsigned char value) const
	{
		return half(9) + half(1) + static_cast<char>(value) + std::string(3, '\0');
	}
	std::string packet(uint32_t number, uint64_t time, uint32_t length) const
	{
		return block(6, word(number) + word(static_cast<uint32_t>(time >> 32)) +
					word(static_cast<uint32_t>(time)) + word(18) +
					word(length) + std::string(20, 'x'));
	}
	std::string old_packet(uint16_t number, uint64_t time, uint32_t length) const
	{
		return block(2, half(number) + half(0) + word(static_cast<uint32_t>(time >> 32)) +
					word(static_cast<uint32_t>(time)) + word(18) +
					word(length) + std::string(20, 'x'));
	}
};

Source capture(const File &file)
{
	Source spec;
	spec.kind = SourceKind::pcap;
	spec.path = file.path();
	return spec;
}

// Today's times, which do not fit 64 bits of picoseconds: only differences do.
constexpr uint32_t today = 1790000000;

// Three packets 5 us and 1 s after the first, of 60, 1000 and 60 bytes without FCS.
void same_packets_in_all_formats(void **)
{
	File file;
	for (bool swapped : {false, true}) {
		Order o = {swapped};
		uint64_t us = 1000000ull * today, ns = 1000 * us;
		std::string options = o.half(1) + o.half(2) + "hi" + std::string(2, '\0') +
				      o.resolution(9) + o.half(0) + o.half(0);
		uint64_t binary = (static_cast<uint64_t>(today) << 20) + 3;
		const struct {
			const char *name, *bytes_end;
			std::string bytes;
		} rows[] = {
			{"pcap", "",
				o.pcap_header() + o.pcap_record(today, 10, 60) +
					o.pcap_record(today, 15, 1000) +
					o.pcap_record(today + 1, 10, 60)},
			{"pcap, nanoseconds", "",
				o.pcap_header(0xa1b23c4d) + o.pcap_record(today, 10, 60) +
					o.pcap_record(today, 5010, 1000) +
					o.pcap_record(today + 1, 10, 60)},
			{"pcapng", "",
				o.section() + o.interface() + o.packet(0, us, 60) +
					o.block(5, std::string(12, 's')) + // statistics
					o.packet(0, us + 5, 1000) + o.packet(0, us + 1000000, 60)},
			{"pcapng, nanoseconds and microseconds, a second section", "",
				o.section() + o.interface(options) + o.interface() +
					o.packet(0, ns, 60) + o.packet(1, us + 5, 1000) +
					o.section() + o.interface() +
					o.old_packet(0, us + 1000000, 60)},
			{"pcapng, an offset in seconds", "",
				o.section() +
					o.interface(o.half(14) + o.half(8) +
						    (swapped ? o.word(0) + o.word(today)
							     : o.word(today) + o.word(0))) +
					o.packet(0, 0, 60) + o.packet(0, 5, 1000) +
					o.packet(0, 1000000, 60)},
			{"pcapng, 2^-20 s", "binary",
				o.section() + o.interface(o.resolution(0x80 | 20)) +
					o.packet(0, binary, 60) + o.packet(0, binary + 4, 1000) +
					o.packet(0, binary + (1 << 20), 60)},
		};
		for (const auto &row : rows) {
			file.write(row.bytes);
			Source spec = capture(file);
			SourceState source(spec, 1, 0);
			Packet first = source.take(), second = source.take(), third = source.take();
			Ps five_us = *row.bytes_end ? 3814697 : 5000000; // 4 / 2^20 s
			if (first.born != 0 || std::llabs(second.born - five_us) > 1 ||
				third.born != ps_per_s)
				fail_msg("%s: at %lld, %lld", row.name,
					static_cast<long long>(second.born),
					static_cast<long long>(third.born));
			assert_int_equal(first.bytes, 64);
			assert_int_equal(second.bytes, 1004);
			assert_int_equal(first.flow, third.flow);
			assert_true(source.time() == never);

			spec.loop = true;
			SourceState looped(spec, 1, 0);
			for (int i = 0; i < 3; i++)
				looped.take();
			assert_int_equal(looped.time(), ps_per_s + 1000000);
			looped.take();
			assert_int_equal(looped.take().bytes, 1004);
		}
	}
}

void bad_files_are_refused(void **)
{
	File file;
	Order o = {false};
	std::string ng = o.section() + o.interface();
	const struct {
		const char *want;
		std::string bytes;
	} rows[] = {
		{"shorter than a pcap header", "abc"},
		{"is not a pcap file", std::string(24, 'x')},
		{"holds no packet", o.pcap_header()},
		{"truncated", o.pcap_header() + o.pcap_record(1, 1, 60).substr(0, 30)},
		{"does not hold Ethernet", o.pcap_header(0xa1b2c3d4, 113)},
		{"truncated or damaged", o.section().substr(0, 20)},
		{"truncated or damaged", o.word(0x0a0d0d0a) + std::string(24, '\0')},
		{"holds no packet", ng},
		{"does not hold Ethernet", o.section() + o.interface("", 113)},
		{"truncated or damaged", ng + o.packet(1, 0, 60)}, // no such interface
		{"truncated or damaged", ng + o.packet(0, 0, 60).substr(0, 40)},
		{"truncated or damaged", ng + o.block(6, std::string(8, 'x'))},
		{"truncated or damaged", ng + o.word(6) + o.word(13)},
		{"truncated or damaged", ng + o.word(5) + o.word(16) + o.word(0) + o.word(20)},
		{"truncated or damaged", o.section() + o.interface(o.half(9) + o.half(400))},
		{"below a picosecond", o.section() + o.interface(o.resolution(13))},
		{"simple packet blocks", ng + o.block(3, o.word(60) + std::string(60, 'x'))},
	};
	for (const auto &row : rows) {
		file.write(row.bytes);
		Source spec = capture(file);
		try {
			SourceState bad(spec, 1, 0);
			fail_msg("accepted, wanted: %s", row.want);
		} catch (const InputError &error) {
			if (!std::strstr(error.what(), row.want) ||
				!std::strstr(error.what(), file.path()))
				fail_msg("'%s', wanted: %s", error.what(), row.want);
		}
	}
	file.write(ng + o.packet(0, 0, 60) + o.packet(0, 5000000000000ull, 60));
	Source spec = capture(file);
	try {
		SourceState(spec, 1, 0).take();
		fail_msg("two packets with 57 days between them were accepted");
	} catch (const InputError &error) {
		assert_non_null(std::strstr(error.what(), "46 days"));
	}
}

} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_packets_in_all_formats),
		cmocka_unit_test(bad_files_are_refused),
	};
	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
