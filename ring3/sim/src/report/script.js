// A click on a name in a legend hides its line, or shows it again.
for (const item of document.querySelectorAll(".legend li")) {
	item.addEventListener("click", () => {
		item.classList.toggle("off");
		const figure = item.closest("figure");
		for (const line of figure.querySelectorAll("svg .l" + item.dataset.line))
			line.classList.toggle("off");
	});
}
