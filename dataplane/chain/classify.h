// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which chain a packet belongs to: by the NFI-ID of the convoy that it came in, or by its SC-ID,
// which is a VLAN id or a VXLAN VNI. A packet of a VXLAN chain is shown to functions without its
// tunnel: its view is moved to the inner frame.
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
	unsigned nfi_count;
	uint8_t rest; // class of what nothing else matches
	uint8_t vlan[4096]; // class by id of the outermost tag
	struct cv_id_class {
		uint32_t id;
		uint8_t class;
	} * vni, *nfi; // ascending
};

void cv_classifier_init(struct cv_classifier *classifier);
// Each 0, -EEXIST where that match has a class already, or -ENOMEM.
int cv_classifier_add_vlan(struct cv_classifier *classifier, uint16_t vlan, uint8_t class);
int cv_classifier_add_vni(struct cv_classifier *classifier, uint32_t vni, uint8_t class);
int cv_classifier_add_nfi(struct cv_classifier *classifier, uint16_t nfi, uint8_t class);
int cv_classifier_add_rest(struct cv_classifier *classifier, uint8_t class);
void cv_classifier_free(struct cv_classifier *classifier);

// The class of an NFI-ID, or CV_CLASS_NONE.
uint8_t cv_classify_nfi(const struct cv_classifier *classifier, uint16_t nfi);

// The class of each of n views. Where NFI-IDs have classes, a packet that came in a convoy has its
// class in view->out (rx.h), and others CV_CLASS_NONE. A view whose VNI has a class is moved to the inner frame, and a
// checksum of the outer UDP header, which would no longer hold after a function changed the inner
// frame, is set to zero: none (RFC 7348 section 5, RFC 6935).
// Returns true if all n are of the same class.
bool cv_classify(const struct cv_classifier *classifier, struct cv_view *views, uint8_t *classes,
	uint16_t n);

#endif
