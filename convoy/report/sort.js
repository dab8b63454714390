// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A click on a heading sorts its table: numbers from the largest, words from A; a second click
// reverses the order. Missing values stay last. Rows that compare equal keep their order.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
	const heads = [...table.tHead.rows[0].cells];
	heads.forEach((head, column) => head.addEventListener("click", () => {
		const numeric = head.classList.contains("number");
		const first = numeric ? "descending" : "ascending";
		const turned = first === "ascending" ? "descending" : "ascending";
		const order = head.getAttribute("aria-sort") === first ? turned : first;
		const sign = order === "ascending" ? 1 : -1;
		const missing = (cell) => cell.classList.contains("missing");
		const compare = (one, two) => {
			const a = one.cells[column], b = two.cells[column];
			if (missing(a) || missing(b))
				return missing(a) - missing(b);
			if ("value" in a.dataset && "value" in b.dataset)
				return sign * (a.dataset.value - b.dataset.value);
			return sign * a.textContent.localeCompare(b.textContent, "en", {numeric: true});
		};
		heads.forEach((other) => other.removeAttribute("aria-sort"));
		head.setAttribute("aria-sort", order);
		table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
	}));
}
