// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which chain a packet belongs to: by its SC-ID, which is a VLAN id or a VXLAN VNI. A packet of a
// VXLAN chain is shown to functions without its tunnel: its view is moved to the inner frame.
#ifndef CV_CLASSIFY_H
#define CV_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/view.h"

#define CV_CLASS_NONE 0xff // no chain matches
#define CV_VNI_MAX 0xffffff

// What one port's chains match. Classes are numbers that the caller gives, < CV_CLASS_NONE.
struct cv_classifier {
	bool by_vlan;
	unsigned vni_count;
	uint8_t rest; // class of what nothing else matches
	uint8_t vlan[4096]; // class by id of the outermost tag
	struct cv_vni_class {
		uint32_t vni;
		uint8_t class;
	} * vni; // ascending
};

void cv_classifier_init(struct cv_classifier *classifier);
// Each 0, -EEXIST where that match has a class already, or -ENOMEM.
int cv_classifier_add_vlan(struct cv_classifier *classifier, uint16_t vlan, uint8_t class);
int cv_classifier_add_vni(struct cv_classifier *classifier, uint32_t vni, uint8_t class);
int cv_classifier_add_rest(struct cv_classifier *classifier, uint8_t class);
void cv_classifier_free(struct cv_classifier *classifier);

// The class of each of n views. A view whose VNI has a class is moved to the inner frame, and a
// checksum of the outer UDP header, which would no longer hold after a function changed the inner
// frame, is set to zero: none (RFC 7348 section 5, RFC 6935).
// Returns true if all n are of the same class.
bool cv_classify(const struct cv_classifier *classifier, struct cv_view *views, uint8_t *classes,
	uint16_t n);

#endif
