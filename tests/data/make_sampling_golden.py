#!/usr/bin/env python3
"""Writes sampling_golden.inc: distributions after each sampler, from the formulas of the papers, with nothing shared with src/sample.

Every function takes and returns a list of (id, logit), sorts where the paper sorts, and uses Python's doubles. Run it in this folder.
"""
import itertools
import math
import random
import struct

f32 = lambda x: struct.unpack('f', struct.pack('f', x))[0]
NINF = float('-inf')


def probs(cands):
    top = max(l for _, l in cands)
    e = [math.exp(l - top) for _, l in cands]
    z = math.fsum(e)
    return [x / z for x in e]


def ranked(cands):
    return sorted(cands, key=lambda c: (-c[1], c[0]))


def top_k(c, k):
    return ranked(c)[:k] if k > 0 else c


def top_p(c, p):
    if p in (0, 1):
        return c
    c = ranked(c)
    total, out = 0.0, []
    for cand, q in zip(c, probs(c)):
        out.append(cand)
        total += q
        if total >= p:
            break
    return out


def min_p(c, p):
    q = probs(c)
    return [x for x, y in zip(c, q) if y >= p * max(q)]


def typical(c, p):
    if p in (0, 1):
        return c
    q = probs(c)
    h = -sum(x * math.log(x) for x in q if x > 0)
    order = sorted(range(len(c)), key=lambda i: (abs(-math.log(q[i]) - h), c[i][0]))
    total, out = 0.0, []
    for i in order:
        out.append(c[i])
        total += q[i]
        if total >= p:
            break
    return out


def top_n_sigma(c, n):
    if n == 0:
        return c
    ls = [l for _, l in c]
    mean = sum(ls) / len(ls)
    sigma = math.sqrt(sum((l - mean) ** 2 for l in ls) / len(ls))
    return [x for x in c if x[1] >= max(ls) - n * sigma]


def xtc_always(c, threshold):
    c = ranked(c)
    q = probs(c)
    above = sum(1 for x in q if x >= threshold)
    return c[above - 1:] if above >= 2 else c


def temperature(c, t):
    return [(i, l / t) for i, l in c]


def dynamic(c, t, r, e):
    q = probs(c)
    h = -sum(x * math.log(x) for x in q if x > 0)
    lo, hi = max(0.0, t - r), t + r
    return temperature(c, lo + (hi - lo) * (h / math.log(len(c))) ** e)


def penalties(c, history, last_n, repeat, freq, pres):
    window = history if last_n < 0 else history[len(history) - min(last_n, len(history)):]
    out = []
    for i, l in c:
        n = window.count(i)
        if n:
            l = l / repeat if l > 0 else l * repeat
            l -= n * freq + pres
        out.append((i, l))
    return out


def dry(c, history, texts, mult, base, allowed, last_n, breakers):
    """The quadratic way: for every earlier place, compare backwards from there and from the end."""
    text, ends = '', []
    for t in history:
        text += texts[t]
        ends.append(len(text))
    breaks = []
    for i, end in enumerate(ends):
        begin = ends[i - 1] if i else 0
        breaks.append(any(text[:e].endswith(b) for e in range(begin + 1, end + 1) for b in breakers))
    if last_n >= 0:
        history, breaks = history[len(history) - min(last_n, len(history)):], breaks[len(breaks) - min(last_n, len(breaks)):]
    n, best = len(history), {}
    for at in range(n - 1):  # the token at + 1 followed what ends at `at`
        length = 0
        while length <= at and history[at - length] == history[n - 1 - length] and not breaks[n - 1 - length]:
            length += 1
        if length and not breaks[at + 1]:
            best[history[at + 1]] = max(best.get(history[at + 1], 0), length)
    return [(i, l - mult * base ** (best[i] - allowed) if best.get(i, 0) >= allowed and i in best else l) for i, l in c]


def mirostat_cut(c, tau):
    q = probs(c)
    out = [x for x, y in zip(c, q) if -math.log2(y) <= 2 * tau]
    return out or ranked(c)[:1]


def bias(c, add):
    for i, b in add:
        c = [(j, l + b if j == i else l) for j, l in c]
    return [x for x in c if x[1] > NINF]


DEFAULTS = dict(temperature=1.0, dyn_temp_range=0.0, dyn_temp_exponent=1.0, top_k=0, top_p=1.0, min_p=0.0, typical_p=1.0,
                top_n_sigma=0.0, xtc_probability=0.0, xtc_threshold=0.1, repeat_penalty=1.0, frequency_penalty=0.0,
                presence_penalty=0.0, penalty_last_n=64, dry_multiplier=0.0, dry_base=1.75, dry_allowed_length=2, dry_last_n=-1,
                mirostat=0, mirostat_tau=5.0)
ORDER = ['penalties', 'dry', 'top_n_sigma', 'top_k', 'typical_p', 'top_p', 'min_p', 'xtc', 'temperature']
BREAKERS = ['\n', ':', '"', '*']
TEXTS = [' a', ' b', ' the', ' cat', ' sat', '\n', ': ', 'x', 'us', 'er', ' "q', ' on', ' mat', '.', ' dog', ' ran',
         ' in', ' it', ' of', ' to', ' is', ' was', ' as', ' at']


def run(logits, history, o, order):
    c = bias([(i, f32(l)) for i, l in enumerate(logits)], o.get('bias', []))
    o = {**DEFAULTS, **o}
    o = {k: f32(v) if isinstance(v, float) else v for k, v in o.items()}
    steps = {
        'penalties': lambda c: penalties(c, history, o['penalty_last_n'], o['repeat_penalty'], o['frequency_penalty'], o['presence_penalty']),
        'dry': lambda c: dry(c, history, TEXTS, o['dry_multiplier'], o['dry_base'], o['dry_allowed_length'], o['dry_last_n'],
                             o.get('breakers', BREAKERS)) if o['dry_multiplier'] else c,
        'top_n_sigma': lambda c: top_n_sigma(c, o['top_n_sigma']),
        'top_k': lambda c: top_k(c, o['top_k']),
        'typical_p': lambda c: typical(c, o['typical_p']),
        'top_p': lambda c: top_p(c, o['top_p']),
        'min_p': lambda c: min_p(c, o['min_p']),
        'xtc': lambda c: xtc_always(c, o['xtc_threshold']) if o['xtc_probability'] else c,
        'temperature': lambda c: dynamic(c, o['temperature'], o['dyn_temp_range'], o['dyn_temp_exponent']) if o['dyn_temp_range']
        else temperature(c, o['temperature']),
    }
    cut = {'top_n_sigma', 'top_k', 'typical_p', 'top_p', 'min_p', 'xtc'}
    for name in order:
        if o['mirostat'] and name in cut:
            continue
        c = steps[name](c)
    if o['mirostat']:
        c = mirostat_cut(c, o['mirostat_tau'])
    out = [0.0] * len(logits)
    for (i, _), q in zip(c, probs(c)):
        out[i] = q
    return out


def main():
    rnd = random.Random(20260115)
    n = len(TEXTS)
    vectors = [
        [rnd.gauss(0, 3) for _ in range(n)],
        [rnd.gauss(5, 1) for _ in range(n)],
        [10.0 if i == 7 else rnd.gauss(-8, 4) for i in range(n)],
        [float(i // 4) for i in range(n)],  # ties
    ]
    histories = [
        [2, 3, 4, 11, 2, 12, 13, 2, 3, 4],                  # the cat sat on the mat. the cat sat
        [0, 1, 0, 1, 0, 1, 5, 0, 1, 0],                     # a breaker inside
        [8, 9, 6, 0, 1, 8, 9, 6, 0],                        # "user: " breaks
        [7] * 30,
        [],
    ]
    cases = []
    add = lambda v, h, o, order=None: cases.append((v, h, o, order))
    for v in range(len(vectors)):
        for k in (1, 2, 3, 10, n - 1):
            add(v, 4, dict(top_k=k))
        for p in (1e-6, 0.3, 0.5, 0.9, 0.999):
            add(v, 4, dict(top_p=p))
            add(v, 4, dict(typical_p=p))
        for p in (0.01, 0.05, 0.3, 1.0):
            add(v, 4, dict(min_p=p))
        for s in (0.1, 1.0, 2.0):
            add(v, 4, dict(top_n_sigma=s))
        for t in (0.01, 0.05, 0.1, 0.3):
            add(v, 4, dict(xtc_probability=1.0, xtc_threshold=t))
        for t in (0.01, 0.5, 0.8, 2.0, 100.0):
            add(v, 4, dict(temperature=t))
        add(v, 4, dict(temperature=1.0, dyn_temp_range=0.5))
        add(v, 4, dict(temperature=0.8, dyn_temp_range=1.5, dyn_temp_exponent=2.0))
        for tau in (0.5, 1.5, 5.0):
            add(v, 4, dict(mirostat=2, mirostat_tau=tau, temperature=0.9))
        add(v, 4, dict(bias=[(3, 2.5), (7, NINF), (3, -1.0)]))
        for h in range(4):
            add(v, h, dict(repeat_penalty=1.3))
            add(v, h, dict(repeat_penalty=1.1, frequency_penalty=0.4, presence_penalty=0.7, penalty_last_n=5))
            add(v, h, dict(frequency_penalty=-0.5, penalty_last_n=-1))
            add(v, h, dict(dry_multiplier=0.8))
            add(v, h, dict(dry_multiplier=0.5, dry_base=1.2, dry_allowed_length=1, dry_last_n=6))
            add(v, h, dict(dry_multiplier=1.0, breakers=['er: ']))
    for order in itertools.permutations(['top_k', 'top_p', 'temperature', 'min_p']):
        add(0, 4, dict(top_k=9, top_p=0.8, min_p=0.04, temperature=1.8), list(order))
    for order in (ORDER, ORDER[::-1]):
        for v in range(len(vectors)):
            add(v, 0, dict(temperature=0.8, top_k=14, top_p=0.95, min_p=0.02, typical_p=0.97, top_n_sigma=2.5, repeat_penalty=1.15,
                           frequency_penalty=0.1, dry_multiplier=0.6, xtc_probability=1.0, xtc_threshold=0.2), list(order))

    with open('sampling_golden.inc', 'w') as f:
        f.write('/* Written by make_sampling_golden.py. */\n')
        f.write('static const char *const golden_texts[%d] = { %s };\n' % (n, ', '.join('"%s"' % t.replace('\n', '\\n').replace('"', '\\"') for t in TEXTS)))
        f.write('static const float golden_logits[][%d] = {\n' % n)
        for v in vectors:
            f.write('    { %s },\n' % ', '.join('%.9gf' % f32(x) if x != int(x) else '%d' % x for x in v))
        f.write('};\nstatic const int32_t golden_history[][32] = {\n')
        for h in histories:
            f.write('    { %s },\n' % ', '.join(map(str, h + [-1])))
        f.write('};\nstatic const golden_case golden_cases[] = {\n')
        for v, h, o, order in cases:
            q = run(vectors[v], histories[h], o, order or ORDER)
            given = {'temperature': 1.0, **({'penalty_last_n': 64, 'dry_last_n': -1} if h < 4 else {}), **o}  # what is left out is zero, that is off or the default
            fields = ', '.join('.%s = %s' % (k, '%.9g' % f32(x)) for k, x in given.items() if k not in ('bias', 'breakers'))
            f.write('    { %d, %d, { .size = sizeof(qn_sample_opts), %s%s }, "%s", %d,\n      { %s } },\n' % (
                v, h, fields, ', .order = "%s"' % ';'.join(order) if order else '', o.get('breakers', [''])[0], 1 if 'bias' in o else 0,
                ', '.join('%.9g' % x for x in q)))
        f.write('};\n')
    print(len(cases), 'cases')


main()
