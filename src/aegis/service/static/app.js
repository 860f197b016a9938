// What the pages need beyond htmx: following a job, and saying what a control stands at.
(() => {
  "use strict";

  // A control shows its value beside it.
  const tell = (control) => {
    const shown = document.getElementById(control.getAttribute("data-shows"));
    if (shown) {
      shown.textContent = control.value + (control.getAttribute("data-unit") || "");
    }
  };
  document.addEventListener("input", (event) => {
    if (event.target instanceof HTMLInputElement && event.target.hasAttribute("data-shows")) {
      tell(event.target);
    }
  });

  // A job is followed by server-sent events; when it ends the page is loaded anew.
  const follow = (box) => {
    const events = new EventSource(box.getAttribute("data-events"));
    events.onmessage = (message) => {
      const job = JSON.parse(message.data);
      const progress = job.progress || {};
      const bar = box.querySelector("progress");
      box.querySelector("[data-step]").textContent = progress.step || job.state;
      if (progress.total) {
        bar.max = progress.total;
        bar.value = progress.done || 0;
      } else {
        bar.removeAttribute("value");
      }
      if (job.state !== "queued" && job.state !== "running") {
        events.close();
        window.location.reload();
      }
    };
  };
  document.querySelectorAll("[data-events]").forEach(follow);
})();
