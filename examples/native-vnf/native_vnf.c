// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A network function of one's own: swaps the MAC addresses of every packet, where it lies, in a
// convoy or unaggregated. From capture to capture: native-vnf IN OUT
#include <convoy/convoy.h>
#include <pcap/pcap.h>
#include <stdio.h>

static void swap(struct cv_view *packet)
{
	uint8_t mac[6];

	memcpy(mac, packet->data, 6);
	memmove(packet->data, packet->data + 6, 6);
	memcpy(packet->data + 6, mac, 6);
}

int main(int argc, char **argv)
{
	char error[PCAP_ERRBUF_SIZE] = "usage: native-vnf IN OUT";
	pcap_t *in = argc == 3 ? pcap_open_offline(argv[1], error) : NULL;
	pcap_dumper_t *out = in != NULL ? pcap_dump_open(in, argv[2]) : NULL;
	struct cv_view packets[CV_CONVOY_PACKETS_MAX];
	unsigned n, all = 0, refused = 0;
	struct pcap_pkthdr *is;
	const uint8_t *frame;

	while (out != NULL && pcap_next_ex(in, &is, &frame) == 1) {
		n = cv_convoy_packets(packets, (uint8_t *)(uintptr_t)frame, is->caplen);
		for (unsigned i = 0; i < n; i++)
			swap(&packets[i]); // the frame goes on as it came
		if (n > 0)
			pcap_dump((uint8_t *)out, is, frame);
		all += n, refused += n == 0;
	}
	if (out == NULL || *pcap_geterr(in) != '\0' || pcap_dump_flush(out) != 0)
		return fprintf(stderr, "native-vnf: %s\n", in ? pcap_geterr(in) : error), 2;
	return printf("%u packets, %u frames refused\n", all, refused) < 0;
}
