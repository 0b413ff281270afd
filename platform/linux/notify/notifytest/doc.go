// Package notifytest lets a test act as a supervised caller: a thread of the
// test process makes system calls that arrive at a listener.
package notifytest
