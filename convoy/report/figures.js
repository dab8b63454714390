// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Unpacks the plotting library that the page carries and draws its figures. When all are there,
// the document says so: <html data-figures="drawn">.
"use strict";
(async () => {
	const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent),
		(character) => character.charCodeAt(0));
	const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
	const script = document.createElement("script");
	script.textContent = await new Response(unpacked).text();
	document.head.append(script);
	const config = {responsive: true, displaylogo: false, modeBarButtons:
		[["toImage", "zoom2d", "pan2d", "resetScale2d"]],
		// A phone has fingers for that, and its buttons would lie on the legend.
		displayModeBar: innerWidth < 640 ? false : "hover"};
	for (const source of document.querySelectorAll("script[data-figure]")) {
		const {data, layout} = JSON.parse(source.textContent);
		await Plotly.newPlot(source.dataset.figure, data, {autosize: true, ...layout}, config);
	}
	document.documentElement.dataset.figures = "drawn";
})().catch((error) => {
	for (const plot of document.querySelectorAll(".plot"))
		plot.textContent = "This browser could not draw the figure (" + error.message +
			"): it needs Firefox 113, Chrome 80, Safari 16.4 or newer.";
	throw error;
});
