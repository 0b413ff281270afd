//go:build linux

package main

import (
	"math"
	"slices"
)

// quantile is the value below which a share of the samples lies; 0 if there are
// none.
func quantile(samples []float64, share float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[int(math.Round(float64(len(sorted)-1)*share))]
}

func median(samples []float64) float64 { return quantile(samples, 0.5) }

// ratio is the median of the ratios of each round. A passing load disturbs it
// less than the ratio of two medians.
func ratio(samples, baseline []float64) float64 { return median(ratios(samples, baseline)) }

func ratios(samples, baseline []float64) (list []float64) {
	for i := range min(len(samples), len(baseline)) {
		if baseline[i] > 0 {
			list = append(list, samples[i]/baseline[i])
		}
	}
	return list
}

// interval is the 95 % confidence interval of the median, by the ranks that a
// binomial distribution gives: it assumes nothing about the samples' own.
func interval(samples []float64) (low, high float64) {
	if len(samples) == 0 {
		return 0, 0
	}
	sorted, n := slices.Sorted(slices.Values(samples)), float64(len(samples))
	away := 1.96 * math.Sqrt(n) / 2
	return sorted[max(0, int(n/2-away))], sorted[min(len(sorted)-1, int(math.Ceil(n/2+away)))]
}
