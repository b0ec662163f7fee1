"use strict";
(() => {
  const { tracks, series } = JSON.parse(document.getElementById("numbers").textContent);
  const plots = [...document.querySelectorAll(".plot[data-chart]")];
  const write = (value, unit) => {
    if (value === null) return "–";
    const text = value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
    return unit === "/s" ? `${text}/s` : unit ? `${text} ${unit}` : text;
  };
  const nearest = (xs, x) => {
    let low = 0, high = xs.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((xs[middle] + xs[middle + 1]) / 2 < x) low = middle + 1; else high = middle;
    }
    return low;
  };
  const clear = () => document.querySelectorAll(".cross, .tip").forEach((part) => part.remove());
  const show = (plot, place) => {
    clear();
    const track = tracks[plot.dataset.track];
    plot.dataset.place = place;
    for (const other of plots.filter((each) => each.dataset.track === plot.dataset.track)) {
      const cross = document.createElement("div");
      cross.className = "cross";
      cross.style.left = `${track.x[place] / 10}%`;
      other.append(cross);
    }
    const tip = document.createElement("div");
    tip.className = "tip";
    const head = document.createElement("b");
    head.textContent = track.heads[place];
    tip.append(head);
    for (const { label, unit, values } of series[plot.dataset.chart]) {
      const row = document.createElement("span");
      const name = document.createElement("span");
      const value = document.createElement("span");
      name.textContent = label;
      value.textContent = write(values[place], unit);
      row.append(name, value);
      tip.append(row);
    }
    plot.append(tip);
    const x = (track.x[place] / 1000) * plot.clientWidth;
    const fits = x + 12 + tip.offsetWidth < plot.clientWidth;
    tip.style.left = `${fits ? x + 12 : Math.max(0, x - 12 - tip.offsetWidth)}px`;
  };
  for (const plot of plots) {
    const { x } = tracks[plot.dataset.track];
    const follow = (event) => {
      const box = plot.getBoundingClientRect();
      show(plot, nearest(x, ((event.clientX - box.left) / box.width) * 1000));
    };
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", follow);
    plot.addEventListener("pointerleave", clear);
    plot.addEventListener("blur", clear);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (event.key === "Escape") clear();
      if (!step) return;
      event.preventDefault();
      const place = Number(plot.dataset.place ?? -1) + step;
      show(plot, Math.min(Math.max(place, 0), x.length - 1));
    });
  }
})();
