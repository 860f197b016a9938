// What the pages need beyond htmx: following a job, saying what a control stands at, searching anew.
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

  // Where a best is on screen, it is searched anew for what a moved control says. The element that
  // asks stays: one within what is replaced would be gone before its time has come.
  let pending = 0;
  document.addEventListener("change", (event) => {
    const again = document.getElementById("again");
    const best = document.getElementById("best");
    if (again && best && best.childElementCount && event.target.closest("#controls")) {
      clearTimeout(pending);
      pending = setTimeout(() => again.dispatchEvent(new CustomEvent("again")), 60);
    }
  });

  // Going back by the history keeps what was typed into a form; the address of the link would not.
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.hasAttribute("data-back")) {
      event.preventDefault();
      window.history.back();
    }
  });

  // The secret of a link stands after #, which no browser sends: it goes into the form, and out of the address.
  const secret = document.querySelector("[data-from-address]");
  if (secret instanceof HTMLInputElement && window.location.hash.length > 1) {
    secret.value = window.location.hash.slice(1);
    window.history.replaceState(null, "", window.location.pathname);
    document.getElementById("password").focus();
  }

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

  // What was asked for by a link or a form may take a while: a line says what goes on, and for how long.
  const wait = (words, since) => {
    const seconds = Math.round((Date.now() - since) / 1000);
    document.getElementById("waits").textContent = seconds ? `${words} (${seconds} s)` : words;
  };
  for (const [asks, event] of [["a[data-waits]", "click"], ["form[data-waits]", "submit"]]) {
    document.querySelectorAll(asks).forEach((asked) => {
      asked.addEventListener(event, () => {
        const since = Date.now();
        wait(asked.getAttribute("data-waits"), since);
        setInterval(() => wait(asked.getAttribute("data-waits"), since), 1000);
      });
    });
  }

  // A table that is being opened: its page asks each second how far it is, and goes on when it is there.
  const look = async (box) => {
    const answer = await fetch(`${window.location.pathname}/step`);
    const told = answer.ok ? await answer.json() : { ended: true };
    if (told.ended) {
      window.location.reload();
      return;
    }
    const bar = box.querySelector("progress");
    box.querySelector("[data-step]").textContent = told.step;
    box.querySelector("[data-noted]").textContent = told.noted;
    if (told.total) {
      bar.max = told.total;
      bar.value = Math.min(told.done, told.total);
    } else {
      bar.removeAttribute("value");
    }
    setTimeout(() => look(box), 1000);
  };
  document.querySelectorAll("[data-asks]").forEach((box) => setTimeout(() => look(box), 1000));
})();
