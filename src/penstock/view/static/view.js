// Small conveniences on top of pages that work without it: statistics beside the records, reasons of pictures
// that cannot be shown, keys for paging, and lists that take effect when they change.
"use strict";

const later = (work) => window.setTimeout(work, 700);

async function loadStatistics(box) {
  const body = box.querySelector(".body");
  try {
    const answer = await fetch(box.dataset.source, { credentials: "same-origin" });
    const text = await answer.text();
    if (!answer.ok) {
      body.textContent = text;
      return;
    }
    body.innerHTML = text; // made by the server, which has escaped everything from records
    if (answer.headers.has("X-Progress")) later(() => loadStatistics(box));
  } catch (error) {
    body.textContent = "The statistics could not be loaded. Is the viewer still running?";
  }
}

function watchStatistics() {
  const box = document.getElementById("statistics");
  if (!box) return;
  let isLoaded = false;
  const load = () => {
    if (box.open && !isLoaded) {
      isLoaded = true;
      loadStatistics(box);
    }
  };
  box.addEventListener("toggle", load);
  box.open = window.matchMedia("(min-width: 64rem)").matches;
  load();
}

async function explainPicture(image) {
  const note = document.createElement("span");
  note.className = "fault";
  note.textContent = "Cannot be shown.";
  (image.closest("a") || image).replaceWith(note);
  try {
    const answer = await fetch(image.src, { credentials: "same-origin" });
    if (!answer.ok) note.textContent = "Cannot be shown: " + (await answer.text());
  } catch (error) {
    // the note without a reason stays
  }
}

async function followPredictions() {
  const note = document.getElementById("predicting");
  if (!note) return;
  try {
    const answer = await fetch(note.dataset.source, { credentials: "same-origin" });
    const found = await answer.json();
    if (found.is_done) {
      const isTyping = document.activeElement && document.activeElement.matches("input, select");
      if (isTyping) note.textContent = "The predictions are ready: load the page again to see them.";
      else window.location.reload();
      return;
    }
    note.textContent =
      `Predicting this split: ${found.done.toLocaleString("en")} of ${found.total.toLocaleString("en")} records.`;
    later(followPredictions);
  } catch (error) {
    // the note of the server stays
  }
}

// Before the page is complete: a picture may fail while the rest is still loading.
document.addEventListener(
  "error",
  (event) => {
    if (event.target instanceof HTMLImageElement) explainPicture(event.target);
  },
  true,
);

function watchKeys() {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea, [contenteditable]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const rel = { ArrowRight: "next", ArrowLeft: "prev" }[event.key];
    if (rel && !event.target.closest(".scroll")) {
      const link = document.querySelector(`a[rel="${rel}"]`);
      if (link) link.click();
    } else if (event.key === "/") {
      const filter = document.querySelector("input[name=filter]");
      if (filter) {
        event.preventDefault();
        filter.focus();
      }
    }
  });
}

function watchLists() {
  for (const list of document.querySelectorAll(".controls select")) {
    list.addEventListener("change", () => list.form.requestSubmit());
  }
}

// Empty parameters would make long addresses.
function watchForms() {
  for (const form of document.querySelectorAll(".controls")) {
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
    });
  }
  // Back in the history: enable the fields again.
  window.addEventListener("pageshow", () => {
    for (const field of document.querySelectorAll(".controls [disabled]")) field.disabled = false;
  });
}

document.addEventListener("DOMContentLoaded", () => {
  watchStatistics();
  followPredictions();
  watchKeys();
  watchLists();
  watchForms();
});
