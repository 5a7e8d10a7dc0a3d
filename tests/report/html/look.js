// What a page looks like, measured in the browser. Returns {overflow, contrast, small}.
() => {
  const parse = (text) => {
    const found = text.match(/[\d.]+/g);
    if (!found || text === "transparent") return [0, 0, 0, 0];
    const [r, g, b, a] = found.map(Number);
    return [r, g, b, a === undefined ? 1 : a];
  };
  const over = (top, below) => {
    const a = top[3];
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (one, two) => {
    const [a, b] = [luminance(one), luminance(two)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const paper = parse(getComputedStyle(document.documentElement).backgroundColor);
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), paper);
  };
  // What a text of a picture stands on: the last shape drawn before it that covers its middle.
  const drawn = (text) => {
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    let below = ground(text.ownerSVGElement);
    for (const shape of text.ownerSVGElement.querySelectorAll("rect, path, circle")) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
      const style = getComputedStyle(shape);
      if (style.fill === "none") continue;
      const matrix = shape.getScreenCTM().inverse();
      if (!shape.isPointInFill(new DOMPoint(x, y).matrixTransform(matrix))) continue;
      const fill = parse(style.fill);
      fill[3] *= Number(style.fillOpacity) * Number(style.opacity);
      below = over(fill, below);
    }
    return below;
  };
  const shown = (element) => element.checkVisibility({ contentVisibilityAuto: true }) && element.getClientRects().length;
  const contrast = [];
  const small = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || !shown(element)) continue;
    if (element.closest("script, style, .unseen, title, desc, .skip")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const inside = element instanceof SVGElement;
    const colour = parse(inside ? style.fill : style.color);
    colour[3] *= Number(style.opacity);
    const below = inside ? drawn(element) : ground(element);
    const found = ratio(over(colour, below), below);
    const name = `${element.tagName}.${element.getAttribute("class") || ""} ${walker.currentNode.data.trim().slice(0, 30)}`;
    if (found < 4.5) contrast.push(`${found.toFixed(2)} ${name}`);
  }
  const width = document.documentElement.clientWidth;
  const overflow = [];
  if (document.documentElement.scrollWidth > width) overflow.push(`page ${document.documentElement.scrollWidth}`);
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest(".scroll, .unseen, .skip, svg *") || !shown(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.width && (box.right > width + 0.5 || box.left < -0.5)) overflow.push(`${element.tagName}.${element.className} ${box.right}`);
    else if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== "inline" && !["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX))
      overflow.push(`${element.tagName}.${element.className} holds ${element.scrollWidth} in ${element.clientWidth}`);
  }
  return { overflow, contrast, texts: seen.size };
}
