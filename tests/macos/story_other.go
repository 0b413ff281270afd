//go:build !unix

package main

import (
	"context"
	"errors"
)

func storyCommand(context.Context, []string) error {
	return errors.New("a story needs a terminal of Unix")
}
