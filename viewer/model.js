/* SPDX-License-Identifier: MIT */
/*
 * The profile of the flame graph page: stacks come as they were sampled; here
 * they are filtered by thread, merged and counted. Nothing here draws.
 */
const P = JSON.parse(document.getElementById('profile').textContent);
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
