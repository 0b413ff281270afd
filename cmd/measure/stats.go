package main

import "slices"

// percentile is the smallest value that p percent of all are not above, or 0
// of none.
func percentile(values []int, p int) int {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (p*len(sorted) + 99) / 100 // rounded up
	return sorted[max(rank, 1)-1]
}

func median(values []int) int { return percentile(values, 50) }

// share is a part of a whole in percent.
func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
