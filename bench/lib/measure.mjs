export const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

export const percentile = (numbers, share) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
};

/**
 * Measures two things by turns, so that whatever else the machine does meets both. The ratio is the
 * median of the rounds' ratios: a machine that is slower for one round is slower for both halves.
 */
export const compare = async (rounds, { value, baseline }) => {
  const values = [];
  const baselines = [];
  for (let round = 0; round < rounds; round += 1) {
    // Whoever comes second finds warmer caches: take turns there too.
    if (round % 2 === 0) baselines.push(await baseline(round));
    values.push(await value(round));
    if (round % 2 === 1) baselines.push(await baseline(round));
  }
  return {
    value: median(values),
    baseline: median(baselines),
    ratio: median(values.map((one, round) => one / baselines[round])),
  };
};
