// Package notifytest lets tests be a supervised caller: a thread of the test's
// own process makes system calls that arrive at a listener.
package notifytest
