package spawn

import (
	"testing"
	"testing/synctest"
)

func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.init(true)
		passed := 0
		step := make(chan int)
		go func() {
			for n := range step {
				g.pass(n)
				passed++
			}
		}()
		defer close(step)
		send := func(n, want int, what string) {
			t.Helper()
			select {
			case step <- n:
			default:
				t.Fatalf("%s: the gate is still closed", what)
			}
			synctest.Wait()
			if passed != want {
				t.Fatalf("%s: %d pieces have passed, want %d", what, passed, want)
			}
		}
		synctest.Wait()
		g.ack(10 * window) // nothing was sent, so this gives no credit
		send(window-1, 1, "one byte is left")
		send(1000, 2, "a piece may exceed the window")
		send(1, 2, "the window is full")
		g.ack(-5)
		g.ack(0)
		synctest.Wait()
		if passed != 2 {
			t.Fatal("an ack of nothing has let a piece through")
		}
		g.ack(1000)
		synctest.Wait()
		if passed != 3 {
			t.Fatal("an ack has not let a piece through")
		}
		send(1, 3, "the window is full again")
		g.open()
		synctest.Wait()
		for i := range 10 {
			send(window, 5+i, "opened for good")
		}
	})
}

func TestGate_WithoutFlowControl(t *testing.T) {
	t.Parallel()
	var g gate
	g.init(false)
	for range 10 {
		g.pass(window)
	}
}
