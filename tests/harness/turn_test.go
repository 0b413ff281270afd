package harness

import (
	"strconv"
	"testing"
)

// Each variant has its turn, one at a time, and all run where nothing is set.
func TestIsTurn(t *testing.T) {
	t.Parallel()
	const variants = 3
	runs := [variants]int{}
	for turn := range 10 * variants {
		for i := range variants {
			is, err := isTurn(strconv.Itoa(turn), i, variants)
			if err != nil {
				t.Fatal(err)
			}
			if is {
				runs[i]++
			}
			if all, err := isTurn("", i, variants); !all || err != nil {
				t.Errorf("%d does not run by itself: %v", i, err)
			}
		}
	}
	for i, n := range runs {
		if n != 10 {
			t.Errorf("%d has %d turns of %d", i, n, 10*variants)
		}
	}
	if _, err := isTurn("-1", 0, variants); err == nil {
		t.Error("-1 is a turn")
	}
}

// The cells of a matrix take turns by the sum of their indexes. Every row and every
// column has a cell in each turn, if there are no more turns than either.
func TestIsTurn_OfAMatrix(t *testing.T) {
	t.Parallel()
	const rows, columns = 5, 3
	for turns := 1; turns <= columns; turns++ {
		ran := [rows][columns]int{}
		for turn := range turns {
			inRow, inColumn := [rows]bool{}, [columns]bool{}
			for i := range rows {
				for j := range columns {
					is, err := isTurn(strconv.Itoa(turn), i+j, turns)
					if err != nil {
						t.Fatal(err)
					}
					if is {
						inRow[i], inColumn[j] = true, true
						ran[i][j]++
					}
				}
			}
			if all := ([rows]bool{true, true, true, true, true}); inRow != all {
				t.Errorf("turn %d of %d: rows %v", turn, turns, inRow)
			}
			if all := ([columns]bool{true, true, true}); inColumn != all {
				t.Errorf("turn %d of %d: columns %v", turn, turns, inColumn)
			}
		}
		for i, row := range ran {
			for j, n := range row {
				if n != 1 {
					t.Errorf("of %d turns the cell %d, %d has %d", turns, i, j, n)
				}
			}
		}
	}
}
