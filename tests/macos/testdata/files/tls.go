package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get("https://example.com")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer.Status)
}
