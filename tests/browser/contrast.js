// What on the page has less contrast than WCAG 2.2 AA asks for: text 4.5 : 1 (3 : 1 where it is large), the edge or
// ground of what can be filled in 3 : 1. From computed colours, shadow trees included; what is disabled is exempt.
() => {
  const colour = (text) => {
    const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    const scale = text.startsWith("color(srgb") ? 255 : 1;
    return [...numbers.slice(0, 3).map((v) => v * scale), numbers[3] ?? 1];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const outer = (e) => e.assignedSlot ?? e.parentElement ?? e.getRootNode().host ?? null;
  const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = outer(at)) layers.push(colour(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const faded = (c, e) => {
    let alpha = c[3];
    for (let at = e; at; at = outer(at)) alpha *= Number(getComputedStyle(at).opacity);
    return [...c.slice(0, 3), alpha];
  };
  const disabled = (e) =>
    e.closest(":disabled, [aria-disabled=true], [data-disabled]") ||
    e.closest("label")?.parentElement.querySelector(":disabled") ||
    e.closest("[data-testid=stTooltipIcon]")?.querySelector(":disabled");
  const found = [];
  let many = 0;
  const note = (least, contrast, what, e, words) => {
    many += 1;
    const name = `${e.tagName} ${e.className?.baseVal ?? e.className}`;
    if (contrast < least) found.push(`${contrast.toFixed(2)} ${what} ${name}: ${words.slice(0, 40)}`);
  };
  const judge = (e) => {
    const box = e.getBoundingClientRect(),
      style = getComputedStyle(e);
    if (box.width < 2 || box.height < 2 || disabled(e)) return;
    if (!e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return;
    const field = e.matches("input:not([type=range], [type=checkbox], [type=radio], [type=file]), textarea, select");
    const texts = [...e.childNodes].filter((node) => node.nodeType === 3),
      own = texts.map((node) => node.data.trim()).join(" ").trim();
    const words = own || (field && !e.matches("select") ? e.value || e.placeholder || "" : "");
    if (words) {
      const behind = ground(e),
        typed = own || e.value ? style.color : getComputedStyle(e, "::placeholder").color,
        paint = e instanceof SVGElement ? style.fill : typed;
      const size = parseFloat(style.fontSize),
        large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      note(large ? 3 : 4.5, ratio(over(faded(colour(paint), e), behind), behind), "text", e, words);
    }
    if (!field) return;
    let best = 0;
    for (let at = e, up = 0; at && up < 4; at = outer(at), up++) {
      const { width, height } = at.getBoundingClientRect();
      if (width > box.width + 90 || height > box.height + 24) break;
      const around = ground(outer(at)),
        look = getComputedStyle(at);
      const edge = over(faded(colour(look.borderTopColor), at), around);
      if (parseFloat(look.borderTopWidth) > 0) best = Math.max(best, ratio(edge, around));
      best = Math.max(best, ratio(ground(at), around));
    }
    note(3, best, "field", e, e.ariaLabel ?? "");
  };
  const walk = (root) => {
    for (const e of root.querySelectorAll("*")) {
      if (e.shadowRoot) walk(e.shadowRoot);
      judge(e);
    }
  };
  walk(document);
  return { found, many };
};
