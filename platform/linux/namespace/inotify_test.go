package namespace

import "testing"

func TestShare(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ whole, want int }{{128, 32}, {8192, 2048}, {40, 16}, {16, 8}, {2, 1}, {1, 1}} {
		if got := share(test.whole, 4, 16); got != test.want {
			t.Errorf("of %d: %d, want %d", test.whole, got, test.want)
		}
	}
}
