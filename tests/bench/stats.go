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
func ratio(samples, baseline []float64) float64 {
	var ratios []float64
	for i := range min(len(samples), len(baseline)) {
		if baseline[i] > 0 {
			ratios = append(ratios, samples[i]/baseline[i])
		}
	}
	return median(ratios)
}
