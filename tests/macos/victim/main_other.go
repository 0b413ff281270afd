//go:build !unix

package main

func main() {}
