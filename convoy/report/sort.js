// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A click on a heading sorts its table: numbers from the largest, words from A; a second click
// reverses the order. Words among numbers stay behind them, missing values last. Rows that compare
// equal keep their order.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
	const heads = [...table.tHead.rows[0].cells];
	heads.forEach((head, column) => head.addEventListener("click", () => {
		const numeric = head.classList.contains("number");
		const first = numeric ? "descending" : "ascending";
		const turned = first === "ascending" ? "descending" : "ascending";
		const order = head.getAttribute("aria-sort") === first ? turned : first;
		const sign = order === "ascending" ? 1 : -1;
		const numbered = (cell) => "value" in cell.dataset;
		const kind = (cell) => cell.classList.contains("missing") ? 2 : numbered(cell) ? 0 : 1;
		const compare = (one, two) => {
			const a = one.cells[column], b = two.cells[column];
			if (kind(a) !== kind(b))
				return kind(a) - kind(b);
			if (numbered(a))
				return sign * (a.dataset.value - b.dataset.value);
			return sign * a.textContent.localeCompare(b.textContent, "en", {numeric: true});
		};
		heads.forEach((other) => other.removeAttribute("aria-sort"));
		head.setAttribute("aria-sort", order);
		table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
	}));
}
