package main

// circumstances is never asked: no sessions share a sandbox here.
func circumstances() string { return "" }
