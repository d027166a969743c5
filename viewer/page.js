/* SPDX-License-Identifier: MIT */
/*
 * The flame graph page. The profile's stacks come as they were sampled; here
 * they are filtered by thread, merged, laid out and drawn. Everything a user
 * can set is in the address after "#", so that a view can be passed on.
 */
'use strict';
(() => {
const P = JSON.parse(document.getElementById('profile').textContent);
const $ = id => document.getElementById(id);
const ROW = 19;          /* height of a frame, with the gap below it */
const LEAST = 0.5;       /* narrower frames are not drawn */
const ROWS_MAX = 500;    /* of the table, at a time */
const KINDS = ['Python', 'JIT', 'native', 'kernel', 'unresolved'];
const MEANINGS = ['a function of the program or its modules',
  'other code made at run time', 'compiled code of a file',
  'the operating system\u2019s own code', 'no name is known'];
const COLOURS = ['--python', '--jit', '--native', '--kernel', '--unresolved'];
const PYTHON = 0, JIT = 1, UNRESOLVED = 4;

/* ---- What was recorded ---- */

const nodeCount = P.nodeUp.length + 1;
const frameCount = P.frameName.length;

/* Frames that share name, library, file and line are one function. */
const functionOf = new Int32Array(frameCount);
const functions = [];
{
  const known = new Map();
  for (let f = 0; f < frameCount; f++) {
    const key = [P.frameName[f], P.frameDso[f], P.frameFile[f],
      P.frameLine[f]].join();
    let id = known.get(key);
    if (id === undefined) {
      id = functions.length;
      known.set(key, id);
      functions.push(describe(f));
    }
    functionOf[f] = id;
  }
}

function describe(f) {
  const published = P.strings[P.frameName[f]];
  const name = published + (P.frameLined[f] ? ':' + P.frameLine[f] : '');
  const dso = P.strings[P.frameDso[f]];
  const file = P.strings[P.frameFile[f]];
  const python = /^py::(.*?):([^:]*)$/s.exec(published);
  const source = python ? python[2] : file;
  const base = source.slice(source.lastIndexOf('/') + 1);
  return {
    name, dso, file, line: P.frameLine[f],
    kind: P.frameKind[f], reason: P.frameReason[f],
    /* What fits into a small box: the name first, where it is after. */
    short: python ? python[1] + (P.frameLined[f] ? ':' + P.frameLine[f] : '') : name,
    where: base || dso,
    shade: shade(name),
  };
}

/* One of three shades of its kind's colour, so that neighbours differ. */
function shade(name) {
  let hash = 0;
  for (let i = 0; i < name.length; i++)
    hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return ((hash >>> 0) % 3 - 1) * 0.07;
}

const hasManaged = functions.some(f => f.kind === PYTHON || f.kind === JIT);
const hasInterpreter = P.frameInterpreter.some(f => f);

/* By node: 1 if it, or what called it, is a Python frame. */
const inPython = new Uint8Array(nodeCount);
for (let n = 1; n < nodeCount; n++)
  inPython[n] = P.frameKind[P.nodeFrame[n - 1]] === PYTHON ||
    inPython[n - P.nodeUp[n - 1]] ? 1 : 0;

/* ---- What is shown ---- */

const state = { search: '', zoom: 0, layout: 'icicle', interpreter: false,
  thread: 'all', sort: hasManaged ? 'managed' : 'self', up: false };
let tree;          /* merged stacks of the chosen threads */
let view = 0;      /* the tree's node that fills the width */
let matches = null;  /* by function: 1 if it matches the search */
let boxes = [];    /* by depth: [{node, x, w}], from left to right */
let hovered = -1, selected = -1;
let style, hatch;

function chosen(thread, index) {
  return state.thread === 'all' || state.thread === 'p' + thread.pid ||
    state.thread === 't' + index;
}

/* By node of the recording: samples that end there. */
function countSamples() {
  const self = new Float64Array(nodeCount);
  P.threads.forEach((thread, index) => {
    if (!chosen(thread, index))
      return;
    let node = 0;
    for (let i = 0; i < thread.samples.length; i += 2) {
      node += thread.samples[i];
      self[node] += thread.samples[i + 1];
    }
  });
  return self;
}

/* A stack that holds a Python frame is shown without the interpreter's frames:
 * what ran in them counts for the Python function. */
function isShort(node) {
  return !state.interpreter && inPython[node] === 1;
}

/*
 * Merge equal stacks. A child has a greater index than its parent, and `from`
 * is the first of the recording's nodes that went into a node: a name for it
 * that survives other settings.
 */
function build() {
  const self = countSamples();
  const t = { parent: [0], fn: [-1], self: [0], from: [0], depth: [0] };
  const children = new Map();
  const child = (at, fn, n) => {
    const key = at * functions.length + fn;
    let to = children.get(key);
    if (to === undefined) {
      to = t.parent.length;
      children.set(key, to);
      t.parent.push(at);
      t.fn.push(fn);
      t.self.push(0);
      t.from.push(n);
      t.depth.push(t.depth[at] + 1);
    }
    return to;
  };
  /* Which of a node's two forms samples need, at it or below: 1 as it is, 2
   * without the interpreter. */
  const needed = new Uint8Array(nodeCount);
  for (let n = nodeCount - 1; n > 0; n--) {
    if (self[n])
      needed[n] |= isShort(n) ? 2 : 1;
    needed[n - P.nodeUp[n - 1]] |= needed[n];
  }
  const whole = new Int32Array(nodeCount), short = new Int32Array(nodeCount);
  for (let n = 1; n < nodeCount; n++) {
    const frame = P.nodeFrame[n - 1], up = n - P.nodeUp[n - 1];
    const fn = functionOf[frame];
    if (needed[n] & 1)
      whole[n] = child(whole[up], fn, n);
    if (needed[n] & 2)
      short[n] = P.frameInterpreter[frame] ? short[up] : child(short[up], fn, n);
    if (self[n])
      t.self[isShort(n) ? short[n] : whole[n]] += self[n];
  }
  t.self[0] += self[0];
  t.of = n => needed[n] & 2 ? short[n] : whole[n];
  finish(t);
  return t;
}

function finish(t) {
  const count = t.parent.length;
  t.total = Float64Array.from(t.self);
  for (let n = count - 1; n > 0; n--)
    t.total[t.parent[n]] += t.total[n];
  /* Children side by side, the heaviest first. */
  const order = new Int32Array(count - 1).map((_, i) => i + 1);
  order.sort((a, b) => t.parent[a] - t.parent[b] || t.total[b] - t.total[a] ||
    (functions[t.fn[a]].name < functions[t.fn[b]].name ? -1 : 1));
  t.first = new Int32Array(count).fill(-1);
  t.next = new Int32Array(count).fill(-1);
  t.before = new Int32Array(count).fill(-1);
  t.x = new Float64Array(count);
  for (let i = order.length - 1; i >= 0; i--) {
    const n = order[i], p = t.parent[n];
    t.next[n] = t.first[p];
    if (t.first[p] >= 0)
      t.before[t.first[p]] = n;
    t.first[p] = n;
  }
  for (let n = 0; n < count; n++) {
    let x = t.x[n];
    for (let c = t.first[n]; c >= 0; c = t.next[c]) {
      t.x[c] = x;
      x += t.total[c];
    }
  }
}

function pathOf(node) {
  const path = [];
  for (let n = node; n > 0; n = tree.parent[n])
    path.push(n);
  return path.reverse();
}

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

/* Over what is in view. Depth first, so that recursion counts once. */
function countFunctions() {
  const rows = functions.map((f, fn) => ({ fn, self: 0, total: 0, managed: 0 }));
  const open = new Int32Array(functions.length);
  const managed = new Map([[0, -1]]);
  const enter = (n, self, total) => {
    const fn = tree.fn[n], kind = functions[fn].kind;
    const inner = kind === PYTHON || kind === JIT ? fn
      : managed.get(tree.parent[n]);
    managed.set(n, inner);
    if (!open[fn]++)
      rows[fn].total += total;
    rows[fn].self += self;
    if (inner >= 0)
      rows[inner].managed += self;
  };
  const path = pathOf(view);
  for (const n of path)
    enter(n, n === view ? tree.self[n] : 0, tree.total[view]);
  let at = tree.first[view];
  while (at >= 0) {
    enter(at, tree.self[at], tree.total[at]);
    if (tree.first[at] >= 0) {
      at = tree.first[at];
      continue;
    }
    for (;;) {
      open[tree.fn[at]]--;
      managed.delete(at);
      if (tree.next[at] >= 0) {
        at = tree.next[at];
        break;
      }
      at = tree.parent[at];
      if (at === view) {
        at = -1;
        break;
      }
    }
  }
  return rows.filter(r => r.total > 0);
}

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
})();
