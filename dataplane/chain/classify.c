// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>

#include "chain/classify.h"
#include "packet/udp.h"

#define VXLAN_LEN 8
#define VXLAN_PORT RTE_BE16(4789)
#define VXLAN_FLAG_VNI 0x08

void cv_classifier_init(struct cv_classifier *classifier)
{
	memset(classifier, 0, sizeof(*classifier));
	memset(classifier->vlan, CV_CLASS_NONE, sizeof(classifier->vlan));
	classifier->rest = CV_CLASS_NONE;
}

int cv_classifier_add_vlan(struct cv_classifier *classifier, uint16_t vlan, uint8_t class)
{
	if (classifier->vlan[vlan] != CV_CLASS_NONE)
		return -EEXIST;
	classifier->vlan[vlan] = class;
	classifier->by_vlan = true;
	return 0;
}

static int add_id(struct cv_id_class **ids, unsigned *count, uint32_t id, uint8_t class)
{
	struct cv_id_class *table = *ids;
	unsigned at = 0;

	while (at < *count && table[at].id < id)
		at++;
	if (at < *count && table[at].id == id)
		return -EEXIST;
	table = realloc(table, (*count + 1) * sizeof(*table));
	if (table == NULL)
		return -ENOMEM;
	memmove(&table[at + 1], &table[at], (*count - at) * sizeof(*table));
	table[at] = (struct cv_id_class){.id = id, .class = class};
	*ids = table;
	(*count)++;
	return 0;
}

int cv_classifier_add_vni(struct cv_classifier *classifier, uint32_t vni, uint8_t class)
{
	return add_id(&classifier->vni, &classifier->vni_count, vni, class);
}

int cv_classifier_add_nfi(struct cv_classifier *classifier, uint16_t nfi, uint8_t class)
{
	return add_id(&classifier->nfi, &classifier->nfi_count, nfi, class);
}

int cv_classifier_add_rest(struct cv_classifier *classifier, uint8_t class)
{
	if (classifier->rest != CV_CLASS_NONE)
		return -EEXIST;
	classifier->rest = class;
	return 0;
}

void cv_classifier_free(struct cv_classifier *classifier)
{
	free(classifier->vni);
	free(classifier->nfi);
	classifier->vni = classifier->nfi = NULL;
	classifier->vni_count = classifier->nfi_count = 0;
}

static uint8_t class_of(const struct cv_id_class *ids, unsigned count, uint32_t id)
{
	unsigned low = 0;
	unsigned high = count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (ids[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && ids[low].id == id ? ids[low].class : CV_CLASS_NONE;
}

uint8_t cv_classify_nfi(const struct cv_classifier *classifier, uint16_t nfi)
{
	return class_of(classifier->nfi, classifier->nfi_count, nfi);
}

static uint8_t classify_vxlan(const struct cv_classifier *classifier, struct cv_view *view)
{
	unsigned udp = cv_udp_find(view, VXLAN_LEN);
	unsigned inner = udp + CV_UDP_LEN + VXLAN_LEN;
	const uint8_t *vxlan;
	uint8_t class;

	if (udp == 0 || cv_load_be16(view->data + udp + 2) != VXLAN_PORT)
		return CV_CLASS_NONE;
	vxlan = view->data + udp + CV_UDP_LEN;
	if ((vxlan[0] & VXLAN_FLAG_VNI) == 0)
		return CV_CLASS_NONE;
	class = class_of(classifier->vni, classifier->vni_count,
		(uint32_t)vxlan[4] << 16 | vxlan[5] << 8 | vxlan[6]);
	if (class != CV_CLASS_NONE) {
		memset(view->data + udp + 6, 0, 2);
		cv_view_set(view, view->data + inner, view->len - inner);
		view->before = (uint8_t)inner;
	}
	return class;
}

static CV_INLINE bool classify(const struct cv_classifier *classifier, struct cv_view *views,
	uint8_t *classes, uint16_t n, bool by_nfi)
{
	uint8_t different = 0;

	for (uint16_t i = 0; i < n; i++) {
		uint8_t class = by_nfi ? views[i].out : CV_CLASS_NONE;
		int vlan = classifier->by_vlan ? cv_view_vlan(&views[i]) : -1;

		if (class == CV_CLASS_NONE && vlan >= 0)
			class = classifier->vlan[vlan];
		if (class == CV_CLASS_NONE && classifier->vni_count > 0)
			class = classify_vxlan(classifier, &views[i]);
		if (class == CV_CLASS_NONE)
			class = classifier->rest;
		classes[i] = class;
		different |= class ^ classes[0];
	}
	return different == 0;
}

bool cv_classify(
	const struct cv_classifier *classifier, struct cv_view *views, uint8_t *classes, uint16_t n)
{
	if (CV_UNLIKELY(classifier->nfi_count > 0))
		return classify(classifier, views, classes, n, true);
	return classify(classifier, views, classes, n, false);
}
