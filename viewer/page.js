/* SPDX-License-Identifier: MIT */
/*
 * The flame graph page: lays the merged stacks out, draws them, and listens.
 * Everything a user can set is in the address after "#", so that a view can be
 * passed on. The build puts this file behind model.js, into one function.
 */
const $ = id => document.getElementById(id);
const ROW = 19;          /* height of a frame, with the gap below it */
const LEAST = 0.5;       /* narrower frames are not drawn */
const ROWS_MAX = 500;    /* of the table, at a time */

/* ---- Layout and drawing ---- */

const graph = $('graph'), canvas = $('canvas'), pen = canvas.getContext('2d');

function layout() {
  const width = graph.clientWidth;
  boxes = [[{ node: 0, x: 0, w: width }]];
  for (const n of pathOf(view))
    boxes[tree.depth[n]] = [{ node: n, x: 0, w: width }];
  const scale = tree.total[view] ? width / tree.total[view] : 0;
  const left = tree.x[view];
  let level = [view];
  while (level.length) {
    const below = [], row = [];
    for (const n of level)
      for (let c = tree.first[n]; c >= 0; c = tree.next[c]) {
        const w = tree.total[c] * scale;
        if (w < LEAST)
          break;
        row.push({ node: c, x: (tree.x[c] - left) * scale, w });
        below.push(c);
      }
    if (row.length)
      boxes[tree.depth[row[0].node]] = row;
    level = below;
  }
  $('spacer').style.height = boxes.length * ROW + 2 + 'px';
}

function rowTop(depth) {
  const height = Math.max(graph.clientHeight, boxes.length * ROW + 2);
  return state.layout === 'icicle' ? depth * ROW + 1
    : height - (depth + 1) * ROW - 1;
}

function readStyle() {
  const css = getComputedStyle(document.documentElement);
  const value = name => css.getPropertyValue(name).trim();
  style = { colours: COLOURS.map(c => value(c)), ink: value('--frame-ink'),
    all: value('--line'), text: value('--ink'), card: value('--card'),
    accent: value('--accent') };
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const p = tile.getContext('2d');
  p.strokeStyle = style.card;
  p.globalAlpha = 0.75;
  p.lineWidth = 1.2;
  for (const d of [-6, 0, 6]) {
    p.beginPath();
    p.moveTo(d - 1, 7);
    p.lineTo(d + 7, -1);
    p.stroke();
  }
  hatch = pen.createPattern(tile, 'repeat');
}

function shaded(colour, amount) {
  const n = parseInt(colour.slice(1), 16);
  const part = shift => {
    const v = n >> shift & 255;
    return Math.round(amount > 0 ? v + (255 - v) * amount : v * (1 + amount));
  };
  return `rgb(${part(16)} ${part(8)} ${part(0)})`;
}

const fills = new Map();
function fill(fn) {
  if (fn < 0)
    return style.all;
  if (!fills.has(fn))
    fills.set(fn, shaded(style.colours[functions[fn].kind], functions[fn].shade));
  return fills.get(fn);
}

function draw() {
  const width = graph.clientWidth, height = graph.clientHeight;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) ||
      canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  pen.textBaseline = 'middle';
  boxes.forEach((row, depth) => {
    const y = rowTop(depth) - graph.scrollTop;
    if (y > -ROW && y < height)
      for (const box of row)
        drawBox(box, y);
  });
}

function drawBox(box, y) {
  const { node, x, w } = box;
  const fn = tree.fn[node];
  const dim = matches && !(fn >= 0 && matches[fn]);
  const inner = Math.max(w - (w > 3 ? 1 : 0), LEAST);
  pen.globalAlpha = dim ? 0.28 : tree.depth[node] < tree.depth[view] ? 0.6 : 1;
  pen.fillStyle = fill(fn);
  pen.fillRect(x, y, inner, ROW - 1);
  if (fn >= 0 && functions[fn].kind === UNRESOLVED) {
    pen.fillStyle = hatch;
    pen.fillRect(x, y, inner, ROW - 1);
  }
  if (w > 24)
    drawText(fn, x, y, w);
  pen.globalAlpha = 1;
  if (node === hovered || node === selected) {
    pen.strokeStyle = node === selected ? style.accent : style.text;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, Math.max(inner - 2, 1), ROW - 3);
  }
}

const widths = new Map();
function letters(text) {
  if (!widths.has(text))
    widths.set(text, pen.measureText(text).width);
  return widths.get(text);
}

function drawText(fn, x, y, w) {
  const room = w - 9;
  const f = fn < 0 ? null : functions[fn];
  const text = f ? f.short : 'all ' + count(tree.total[0]) + ' samples';
  let fits = text;
  if (letters(text) > room) {
    const keep = Math.floor(text.length * room / letters(text)) - 1;
    if (keep < 2)
      return;
    fits = text.slice(0, keep) + '\u2026';
  }
  pen.fillStyle = f ? style.ink : style.text;
  pen.fillText(fits, x + 4, y + ROW / 2 - 0.5, room);
  if (f && fits === text && f.where !== f.name &&
      letters(text) + letters(f.where) + 10 < room) {
    const alpha = pen.globalAlpha;
    pen.globalAlpha = alpha * 0.6;
    pen.fillText(f.where, x + 12 + letters(text), y + ROW / 2 - 0.5);
    pen.globalAlpha = alpha;
  }
}

let asked = false;
function ask() {
  if (asked)
    return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    draw();
  });
}

/* ---- Words ---- */

function count(n) {
  return n.toLocaleString('en-US');
}

function share(part, whole) {
  const percent = whole ? part * 100 / whole : 0;
  return part && percent < 0.05 ? '<0.1%' : percent.toFixed(1) + '%';
}

function seconds(s) {
  return s >= 100 ? s.toFixed(0) : s.toFixed(2);
}

function element(name, text, className) {
  const e = document.createElement(name);
  if (text !== undefined)
    e.textContent = text;
  if (className)
    e.className = className;
  return e;
}

function fact(label, value, warn) {
  const li = element('li', undefined, warn ? 'warn' : '');
  li.append(label + ' ', element('b', value));
  $('facts').append(li);
}

function showFacts() {
  const title = P.title || 'profile';
  $('title').textContent = title;
  $('title').title = title;
  document.title = title + ' \u2013 tickmap';
  fact('samples', count(P.samples) + (P.event ? ' of ' + P.event : '') +
    (P.frequency ? ' at ' + count(P.frequency) + ' Hz' : ''));
  fact('CPU time', 'on CPU ' + seconds(P.cpuSeconds) + ' of ' +
    seconds(P.lengthNs / 1e9) + ' s');
  fact('lost', P.lost ? count(P.lost) : 'none', P.lost > 0);
  fact('truncated', P.truncated ? count(P.truncated) + ' (' +
    share(P.truncated, P.samples) + ')' : 'none', P.truncated * 100 > P.samples);
  if (P.jitSamples)
    fact('JIT resolved', share(P.jitResolved, P.jitSamples),
      P.jitResolved * 100 < P.jitSamples * 99);
  if (!P.finished)
    fact('the recorder was killed:', 'the end is missing', true);
  const say = text => $('reasons').append(element('li', text));
  for (const [text, n] of P.truncatedBy)
    say(count(n) + ' stacks lack their start: ' + text);
  for (const [text, n] of P.unresolved)
    say(count(n) + ' frames have no name: ' + text);
  for (const hint of P.hints)
    say(hint);
  $('more').hidden = !$('reasons').firstChild;
}

function showLegend() {
  const seen = new Set(functions.map(f => f.kind));
  KINDS.forEach((kind, i) => {
    if (!seen.has(i))
      return;
    const li = element('li');
    li.append(element('span', undefined, 'dot k' + i), kind + ': ' + MEANINGS[i]);
    $('legend').append(li);
  });
}

function showThreads() {
  const select = $('thread');
  const add = (value, text) => {
    const option = element('option', text);
    option.value = value;
    select.append(option);
  };
  const samples = thread => {
    let n = 0;
    for (let i = 1; i < thread.samples.length; i += 2)
      n += thread.samples[i];
    return n;
  };
  const processes = new Map();
  P.threads.forEach((thread, index) => {
    const comm = P.strings[thread.comm];
    const process = processes.get(thread.pid) || { comm, n: 0, threads: [] };
    const n = samples(thread);
    if (thread.pid === thread.tid)
      process.comm = comm;
    process.n += n;
    process.threads.push({ tid: thread.tid, comm, n, index });
    processes.set(thread.pid, process);
  });
  add('all', processes.size === 1 && P.threads.length === 1
    ? P.strings[P.threads[0].comm] + ' ' + P.threads[0].pid
    : 'all processes and threads');
  for (const [pid, process] of [...processes].sort((a, b) => b[1].n - a[1].n)) {
    if (processes.size > 1)
      add('p' + pid, `process ${pid} ${process.comm}: ${share(process.n, P.samples)}`);
    if (process.threads.length > 1)
      for (const t of process.threads.sort((a, b) => b.n - a.n))
        add('t' + t.index, `\u2003thread ${t.tid} ${t.comm}: ${share(t.n, P.samples)}`);
  }
  select.disabled = select.options.length < 2;
}

/* ---- Search ---- */

function compileSearch() {
  const input = $('search');
  let test;
  input.classList.remove('bad');
  matches = null;
  if (!state.search)
    return;
  try {
    const expression = new RegExp(state.search, 'i');
    test = text => expression.test(text);
  } catch (e) {
    input.classList.add('bad');
    const plain = state.search.toLowerCase();
    test = text => text.toLowerCase().includes(plain);
  }
  matches = new Uint8Array(functions.length);
  functions.forEach((f, i) => {
    matches[i] = test(f.name) || test(f.dso) ? 1 : 0;
  });
}

/* Samples in view with a match anywhere in their stack. */
function matchedSamples() {
  const hit = n => tree.fn[n] >= 0 && matches[tree.fn[n]];
  if (pathOf(view).some(hit))
    return tree.total[view];
  let sum = 0;
  const open = [view];
  while (open.length)
    for (let c = tree.first[open.pop()]; c >= 0; c = tree.next[c])
      if (hit(c))
        sum += tree.total[c];
      else
        open.push(c);
  return sum;
}

function showMatched() {
  if (!matches) {
    $('matched').textContent = '';
    return;
  }
  const n = matchedSamples();
  $('matched').textContent = share(n, tree.total[view]) + ' matched (' +
    count(n) + (n === 1 ? ' sample)' : ' samples)');
}

/* ---- The table ---- */

let rows = [];
function sortRows() {
  const name = r => functions[r.fn].name;
  const by = state.sort, sign = state.up ? -1 : 1;
  rows.sort((a, b) => (by === 'name' ? (name(a) < name(b) ? -1 : 1) * sign
    : (b[by] - a[by]) * sign) || b.managed - a.managed || b.self - a.self ||
    b.total - a.total || (name(a) < name(b) ? -1 : 1));
}

function showRows() {
  const body = $('rows'), all = tree.total[view];
  const wanted = rows.filter(r => !matches || matches[r.fn]);
  const fragment = document.createDocumentFragment();
  for (const r of wanted.slice(0, ROWS_MAX)) {
    const f = functions[r.fn];
    const tr = element('tr');
    tr.dataset.fn = r.fn;
    tr.title = f.name + '\n' + (f.file ? f.file + (f.line ? ':' + f.line : '') : f.dso);
    for (const column of hasManaged ? ['managed', 'self', 'total'] : ['self', 'total'])
      tr.append(element('td', r[column] ? share(r[column], all) : '0',
        r[column] ? 'n' : 'n zero'));
    const td = element('td');
    td.append(element('span', undefined, 'dot k' + f.kind), f.short + ' ');
    if (f.where !== f.name)
      td.append(element('small', f.where));
    tr.append(td);
    fragment.append(tr);
  }
  body.replaceChildren(fragment);
  $('cut').hidden = wanted.length <= ROWS_MAX;
  $('cut').textContent = count(wanted.length - ROWS_MAX) +
    ' more: search to find them';
  for (const button of document.querySelectorAll('th button')) {
    const th = button.parentElement;
    if (button.dataset.sort === state.sort)
      th.setAttribute('aria-sort', state.up === (state.sort !== 'name')
        ? 'ascending' : 'descending');
    else
      th.removeAttribute('aria-sort');
  }
}

/* ---- Where we are ---- */

function showCrumbs() {
  const crumbs = $('crumbs'), path = pathOf(view);
  crumbs.replaceChildren();
  if (!path.length) {
    crumbs.append('Click a frame to zoom in; its width is its share of the samples.');
    return;
  }
  const add = (node, text) => {
    const button = element('button', text);
    button.type = 'button';
    button.addEventListener('click', () => zoom(node));
    crumbs.append(button, element('span', '\u203a'));
  };
  add(0, 'all');
  const last = path.pop();
  if (path.length > 4)
    crumbs.append('\u2026', element('span', '\u203a'));
  for (const n of path.slice(-4))
    add(n, functions[tree.fn[n]].short);
  crumbs.append(element('b', functions[tree.fn[last]].short),
    element('span', share(tree.total[last], tree.total[0]) + ' of all'));
}

function writeHash() {
  const words = [];
  const add = (key, value) => words.push(key + '=' + encodeURIComponent(value));
  if (state.search)
    add('search', state.search);
  if (view)
    add('zoom', tree.from[view]);
  if (state.layout !== 'icicle')
    add('layout', state.layout);
  if (state.interpreter)
    add('interpreter', 1);
  if (state.thread !== 'all')
    add('thread', state.thread);
  const hash = '#' + words.join('&');
  if (hash !== (location.hash || '#'))
    history.replaceState(null, '', hash);
}

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  state.search = given.get('search') || '';
  state.zoom = Number(given.get('zoom')) || 0;
  state.layout = given.get('layout') === 'flame' ? 'flame' : 'icicle';
  state.interpreter = given.get('interpreter') === '1';
  const thread = given.get('thread') || 'all';
  state.thread = [...$('thread').options].some(o => o.value === thread) ? thread : 'all';
}

/* ---- Change ---- */

function viewChanged() {
  layout();
  rows = countFunctions();
  sortRows();
  showRows();
  showMatched();
  showCrumbs();
  hideTip();
  writeHash();
  ask();
}

/* The zoomed frame by the recording's node: it may be gone now. */
function treeChanged() {
  const from = state.zoom;
  tree = build();
  view = from > 0 && from < nodeCount ? tree.of(from) : 0;
  hovered = selected = -1;
  fit();
  viewChanged();
}

function searchChanged() {
  compileSearch();
  showRows();
  showMatched();
  writeHash();
  ask();
}

function zoom(node) {
  view = node;
  state.zoom = tree.from[node];
  selected = node > 0 ? node : -1;
  viewChanged();
  reveal(view);
}

/* Start where the roots are. */
function fit() {
  layout();
  graph.scrollTop = state.layout === 'icicle' ? 0 : graph.scrollHeight;
}

function reveal(node) {
  const y = rowTop(tree.depth[node]);
  if (y < graph.scrollTop)
    graph.scrollTop = y - ROW;
  else if (y + ROW > graph.scrollTop + graph.clientHeight)
    graph.scrollTop = y + 2 * ROW - graph.clientHeight;
}

function showControls() {
  $('search').value = state.search;
  $('thread').value = state.thread;
  $('interpreter').checked = state.interpreter;
  $('icicle').setAttribute('aria-pressed', state.layout === 'icicle');
  $('flame').setAttribute('aria-pressed', state.layout === 'flame');
}

/* ---- Pointer ---- */

function boxAt(event) {
  const area = graph.getBoundingClientRect();
  const x = event.clientX - area.left - graph.clientLeft;
  const y = event.clientY - area.top - graph.clientTop + graph.scrollTop;
  const depth = state.layout === 'icicle' ? Math.floor((y - 1) / ROW)
    : Math.floor((rowTop(0) + ROW - y) / ROW);
  const row = boxes[depth];
  if (!row)
    return -1;
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].x + row[middle].w < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low < row.length && row[low].x <= x ? row[low].node : -1;
}

function tipRow(label, n) {
  const tr = element('tr');
  tr.append(element('td', label), element('td', count(n)),
    element('td', share(n, tree.total[0])));
  if (view)
    tr.append(element('td', share(n, tree.total[view]) + ' of view'));
  return tr;
}

function words(node) {
  const f = functions[tree.fn[node]];
  return `${f.name}, ${KINDS[f.kind]}, total ` +
    `${share(tree.total[node], tree.total[0])}, self ` +
    `${share(tree.self[node], tree.total[0])}`;
}

function showTip(node, x, y) {
  const tip = $('tip');
  if (node <= 0) {
    hideTip();
    return;
  }
  const f = functions[tree.fn[node]];
  const table = element('table');
  table.append(tipRow('total', tree.total[node]), tipRow('self', tree.self[node]));
  tip.replaceChildren(element('b', f.name));
  tip.append(element('div', f.file ? f.file + (f.line ? ':' + f.line : '') + '  ' + f.dso : f.dso),
    element('div', KINDS[f.kind] + ': ' +
      (f.kind === UNRESOLVED ? P.reasonText[f.reason] : MEANINGS[f.kind])),
    table);
  tip.hidden = false;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + 'px';
  tip.style.top = (y + 18 + h < innerHeight ? y + 18 : Math.max(4, y - h - 12)) + 'px';
}

function hideTip() {
  $('tip').hidden = true;
}

graph.addEventListener('mousemove', event => {
  const node = boxAt(event);
  if (node !== hovered) {
    hovered = node;
    ask();
  }
  showTip(node, event.clientX, event.clientY);
});
graph.addEventListener('mouseleave', () => {
  hovered = -1;
  hideTip();
  ask();
});
graph.addEventListener('click', event => {
  const node = boxAt(event);
  if (node >= 0)
    zoom(node);
});
let fromBottom = 0;
graph.addEventListener('scroll', () => {
  fromBottom = graph.scrollHeight - graph.clientHeight - graph.scrollTop;
  hideTip();
  ask();
});

/* ---- Keys ---- */

function back() {
  if (state.search) {
    state.search = '';
    $('search').value = '';
    searchChanged();
  } else if (view) {
    zoom(tree.parent[view]);
  }
}

function move(key) {
  const away = state.layout === 'icicle' ? 'ArrowDown' : 'ArrowUp';
  const from = selected < 0 ? view : selected;
  let to;
  if (key === 'ArrowLeft')
    to = tree.before[from];
  else if (key === 'ArrowRight')
    to = tree.next[from];
  else
    to = key === away ? tree.first[from] : tree.parent[from];
  if (to < 0 || (to === 0 && from === 0))
    return;
  selected = to;
  reveal(to);
  if (to)
    $('said').textContent = words(to);
  ask();
}

document.addEventListener('keydown', event => {
  const typing = event.target === $('search');
  if (event.ctrlKey || event.metaKey || event.altKey)
    return;
  if (event.key === 'Escape') {
    back();
    if (typing)
      graph.focus();
  } else if (event.key === '/' && !typing) {
    $('search').focus();
    $('search').select();
  } else if (event.target === graph && event.key.startsWith('Arrow')) {
    move(event.key);
  } else if (event.target === graph && event.key === 'Enter' && selected >= 0) {
    zoom(selected);
  } else {
    return;
  }
  event.preventDefault();
});

/* ---- Controls ---- */

$('search').addEventListener('input', event => {
  state.search = event.target.value;
  searchChanged();
});
$('thread').addEventListener('change', event => {
  state.thread = event.target.value;
  treeChanged();
});
$('interpreter').addEventListener('change', event => {
  state.interpreter = event.target.checked;
  treeChanged();
});
for (const name of ['icicle', 'flame'])
  $(name).addEventListener('click', () => {
    state.layout = name;
    showControls();
    fit();
    writeHash();
    ask();
  });
for (const button of document.querySelectorAll('th button'))
  button.addEventListener('click', () => {
    state.up = state.sort === button.dataset.sort && !state.up;
    state.sort = button.dataset.sort;
    sortRows();
    showRows();
  });
$('rows').addEventListener('click', event => {
  const tr = event.target.closest('tr');
  if (!tr)
    return;
  const name = functions[tr.dataset.fn].name;
  state.search = '^' + name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
  $('search').value = state.search;
  searchChanged();
});

/* ---- Start ---- */

function arrive() {
  readHash();
  showControls();
  compileSearch();
  treeChanged();
  if (view)
    reveal(view);
}

addEventListener('hashchange', arrive);
new ResizeObserver(() => {
  const keep = fromBottom;
  layout();
  if (state.layout === 'flame')
    graph.scrollTop = graph.scrollHeight - graph.clientHeight - keep;
  draw();
}).observe(graph);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readStyle();
  fills.clear();
  ask();
});

showFacts();
showLegend();
showThreads();
if (!hasManaged)
  document.querySelector('th button[data-sort=managed]').parentElement.remove();
$('interpreter').parentElement.hidden = !hasInterpreter;
readStyle();
arrive();
