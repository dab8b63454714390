// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A network function of one's own on convoys: swaps the MAC addresses of every packet, where it
// lies, in a convoy or alone. From capture to capture: native-vnf IN OUT
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
	struct cv_view frame, packets[CV_CONVOY_PACKETS_MAX];
	unsigned long convoys = 0, alone = 0, refused = 0;
	struct pcap_pkthdr *header;
	struct cv_convoy convoy;
	const uint8_t *data;

	if (out == NULL)
		return fprintf(stderr, "native-vnf: %s\n", in != NULL ? pcap_geterr(in) : error), 2;
	while (pcap_next_ex(in, &header, &data) == 1) {
		cv_view_set(&frame, (uint8_t *)(uintptr_t)data, (uint16_t)header->caplen);
		switch (cv_convoy_walk(&convoy, packets, &frame, RTE_BE16(CV_CONVOY_PORT))) {
		case CV_CONVOY_OK: // rewritten in place: the frame is sent on as it came
			for (unsigned i = 0; i < convoy.count; i++)
				swap(&packets[i]);
			convoys++;
			break;
		case CV_CONVOY_NOT_A_CONVOY:
			if (frame.len >= CV_ETHER_LEN)
				swap(&frame);
			alone++;
			break;
		default: // does not add up: dropped whole
			refused++;
			continue;
		}
		pcap_dump((uint8_t *)out, header, data);
	}
	printf("%lu convoys, %lu packets alone, %lu frames refused\n", convoys, alone, refused);
	pcap_dump_close(out);
	pcap_close(in);
	return 0;
}
